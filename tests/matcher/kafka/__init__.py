"""A Kafka broker for tests."""
