#if Keyring && os(Linux)
import AssentCore
import Glibc

/// A call to the kernel's key management that failed (keyctl(2), add_key(2)).
struct KeyringFailure: Error {
    let code: Int32
    /// What was being done, for people.
    let action: String

    var error: SecretStoreError {
        switch code {
        case EKEYEXPIRED: Self.expired
        case EKEYREVOKED: Self.revoked
        case ENOKEY, ENOTDIR: Self.damaged("A part of it is missing (\(action)).")
        case EDQUOT, ENFILE:
            SecretStoreError(
                .quotaExceeded,
                "The user's quota of kernel keys is used up (\(action)); what was there still is. See /proc/key-users, "
                    + "remove keys that are not needed, or raise kernel.keys.maxbytes and kernel.keys.maxkeys.")
        case ENOSYS, EPERM, EOPNOTSUPP:
            SecretStoreError(
                .storeUnavailable,
                "The kernel, or the sandbox of this process, does not offer keyrings (\(action), error \(code)). Allow "
                    + "add_key and keyctl in the container's seccomp profile, or keep the secrets in a file vault.")
        case EBUSY:
            SecretStoreError(
                .busy, "Other processes change the keyring all the time (\(action)). Try again, or see which one hangs."
            )
        case EACCES:
            SecretStoreError(
                .notPermitted,
                "The keyring does not permit the access (\(action)). See its owner and permissions: keyctl describe.")
        default:
            SecretStoreError(
                .storageFailed, "The kernel's keyring failed (\(action), error \(code)). Look it up and try again.")
        }
    }

    static let expired = SecretStoreError(
        .expired, "The secret expired. Get a new one: sign in again.")

    static let revoked = SecretStoreError(
        .revoked,
        "Somebody revoked this key or keyring, and the kernel gives it out no more. Store the secret anew; when all of the "
            + "store is revoked, remove everything first.")

    static func damaged(_ what: String) -> SecretStoreError {
        SecretStoreError(
            .tampered,
            "The keyring's content is not what this library wrote. \(what) Another program of this user changes it: remove "
                + "the secret and sign in again.")
    }
}
#endif
