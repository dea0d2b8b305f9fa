"""The Parquet job: plan, writer, commit."""
