"""Commands about dollars: forecasts, bills, quotas."""
