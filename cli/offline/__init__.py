"""Commands that need no stack: conversion, trial, settings, forecasts."""
