"""A model of the protocol: the product's own functions over fakes of S3 and DynamoDB, under many schedules."""
