/// What the operating system or a device offers to keep keys or secrets, and that needs a package trait on Linux.
///
/// The traits are off unless the app asks for them, so that nobody needs C headers of what is not used:
/// `.package(url: …, traits: ["PKCS11", "TPM", "Keyring"])`. What a program was built without, it can say:
///
/// ```swift
/// for backend in PlatformBackend.allCases where backend.library == nil {
///     print("Built without \(backend.trait). It needs \(backend.developmentPackage).")
/// }
/// ```
public enum PlatformBackend: String, Hashable, Sendable, CaseIterable {
    /// Keys in a PKCS#11 token (trait `PKCS11`).
    case pkcs11
    /// Keys in a TPM 2.0 (trait `TPM`).
    case tpm
    /// Secrets in the kernel's keyring (trait `Keyring`).
    case keyring

    /// The library through which this program reaches it; `nil` when the program was built without.
    public var library: String? {
        switch self {
        case .pkcs11:
            #if PKCS11 && os(Linux)
            "p11-kit"
            #else
            nil
            #endif
        case .tpm:
            #if TPM && os(Linux)
            "tpm2-tss (ESYS)"
            #else
            nil
            #endif
        case .keyring:
            #if Keyring && os(Linux)
            "libkeyutils"
            #else
            nil
            #endif
        }
    }

    /// The package trait that adds it.
    public var trait: String {
        switch self {
        case .pkcs11: "PKCS11"
        case .tpm: "TPM"
        case .keyring: "Keyring"
        }
    }

    /// The package of Debian and Ubuntu with the C headers that building it needs.
    public var developmentPackage: String {
        switch self {
        case .pkcs11: "libp11-kit-dev"
        case .tpm: "libtss2-dev"
        case .keyring: "libkeyutils-dev"
        }
    }
}

/// How a TPM is reached unless somebody says otherwise.
public enum TPMDefaults {
    /// The kernel's resource manager, as tpm2-tools name it.
    public static let tcti = "device:/dev/tpmrm0"
}
