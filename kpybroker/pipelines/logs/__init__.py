"""Log aggregation: lines of many brokers and services, parsed, correlated, stored by hour, and bursts of errors."""
