"""Spark sessions as the jobs start them, and their errors."""
