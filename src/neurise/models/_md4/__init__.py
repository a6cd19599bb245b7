"""Parts of MD4."""
