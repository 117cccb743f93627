//! plimsoll
