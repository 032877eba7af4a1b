//! The loop without any driver.
