"""The viewer: a mechanism in the browser, played back or driven."""
