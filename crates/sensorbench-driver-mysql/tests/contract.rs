//! MySQL and MariaDB keeps the driver contract.
