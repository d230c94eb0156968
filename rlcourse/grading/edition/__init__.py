"""The students' edition: a wheel and notebooks without the answers of lessons that are not due."""
