//! `membarrier(2)`, private expedited: 0.4 us with the other cores idle, about 10 us with them running.
#![allow(unsafe_code, reason = "the system call has no safe wrapper")]

/// Commands of `membarrier(2)`, from its manual page.
const GLOBAL: libc::c_int = 1;
const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: the call takes three integers, touches no memory of ours, and an unknown command is an error code.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// True if the kernel knows the call and lets us use it (a seccomp filter may not).
pub(crate) fn register() -> bool {
    membarrier(REGISTER_PRIVATE_EXPEDITED) && membarrier(PRIVATE_EXPEDITED)
}

/// A forked child has lost the registration: it registers again, and failing that takes the slow global form.
pub(crate) fn issue() -> bool {
    membarrier(PRIVATE_EXPEDITED) || (register() || membarrier(GLOBAL))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_registered_process_can_issue_the_barrier() {
        if super::register() {
            assert!(super::issue());
        }
    }
}
