/// Which of the kernel's keyrings holds a ``KeyringSecretStore``, which decides how long it lives (keyrings(7)).
///
/// None of them outlives the kernel: what must be there after a restart belongs into a file vault.
public enum KeyringAnchor: Hashable, Sendable {
    /// The user's keyring (user-keyring(7)): for all sessions of the user, services too. It lives at least as long as
    /// the user has a process, on today's kernels until the machine restarts.
    case user
    /// The user's persistent keyring (persistent-keyring(7)): it is removed when nobody has used it for some time,
    /// three days unless `/proc/sys/kernel/keys/persistent_keyring_expiry` says otherwise.
    case persistent
}
