public import AssentCore

/// Whether new tokens are bound to a key (DPoP, RFC 9449), and which provider holds that key.
///
/// A token that is bound to a key is worth nothing to somebody who has only the token. The key is made by the provider
/// before the first tokens are asked for, and removed by the sign-out. All processes that share the store share the
/// key, so all of them need the provider. In an app, journeys are proved with the same key, so that a server that knows
/// this binds their session to it.
public struct DPoPConfiguration: Sendable {
    /// New tokens are bearer tokens. Stored tokens that are bound to a key stay so, and cannot be used without the
    /// provider.
    public static let off = DPoPConfiguration(keys: nil, algorithm: .es256, isOn: false)

    /// New tokens are bound to a key of `keys`. Stored tokens without a key stay bearer tokens until they are replaced
    /// by a new sign-in.
    ///
    /// - Parameters:
    ///   - keys: makes and holds the key: in software, in a PKCS#11 token, in a TPM.
    ///   - algorithm: what a new key signs with: ES256, ES384, PS256 or EdDSA. Every provider knows ES256. A key that
    ///     is there stays until the sign-out.
    /// - Returns: the setting.
    public static func on(keys: any KeyProvider, algorithm: SignatureAlgorithm = .es256) -> DPoPConfiguration {
        DPoPConfiguration(keys: keys, algorithm: algorithm, isOn: true)
    }

    /// New tokens are bound to a key of `keys` where an earlier sign-in bound tokens to one and no sign-out came since:
    /// for a program of several runs of which only the sign-in decides.
    ///
    /// - Parameter keys: holds the key.
    /// - Returns: the setting.
    public static func kept(keys: any KeyProvider) -> DPoPConfiguration {
        DPoPConfiguration(keys: keys, algorithm: .es256, isOn: false)
    }

    /// Whether all new tokens are bound to a key.
    public let isOn: Bool

    let keys: (any KeyProvider)?
    let algorithm: SignatureAlgorithm

    /// What proofs may be signed with. RS256 is left out as the servers' profiles leave it out (FAPI 2.0 §5.4).
    static let algorithms: Set<SignatureAlgorithm> = [.es256, .es384, .ps256, .edDSA]

    /// New tokens and sessions belong to the key of this installation's registration, which the first sign-in makes. A
    /// container that is enrolled by such a session belongs to this installation, and its PIN signs its user in here
    /// (`Assent.logIn(_:pin:)`). It needs ``TokenConfiguration/registration``.
    public static var installation: DPoPConfiguration {
        DPoPConfiguration(keys: InstallationKeys(), algorithm: .es256, isOn: true)
    }

    /// The same for one manager: the registration whose key it is to be is that manager's alone, and another one that
    /// is made with the same configuration has its own.
    var forOneManager: DPoPConfiguration {
        guard keys is InstallationKeys else { return self }
        return DPoPConfiguration(keys: InstallationKeys(), algorithm: algorithm, isOn: isOn)
    }

    private init(keys: (any KeyProvider)?, algorithm: SignatureAlgorithm, isOn: Bool) {
        self.isOn = isOn
        self.keys = keys
        self.algorithm = algorithm
    }
}
