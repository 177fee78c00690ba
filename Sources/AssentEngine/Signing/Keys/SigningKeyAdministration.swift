import AssentCore
import AssentSigningProtocol

/// What administrators do to the issuer's own keys.
package struct SigningKeyAdministration: SigningPart {
    package let realm: SigningRealm

    /// What an administrator does to the issuer's keys.
    package enum KeyChange: String, Sendable, Hashable {
        /// A new identity key takes the old one's place.
        case rotateIdentity
        /// The online keys are not valid any more, and new ones are made.
        case withdrawOnlineKeys = "withdrawOnline"
    }

    /// Changes the issuer's keys.
    ///
    /// - Returns: the thumbprint of the identity key, and the least generation of online keys that counts.
    /// - Throws: ``SigningRefusal``: `forbidden`, `fresh_authentication_required`, `busy`.
    package func change(
        _ caller: SigningCaller, _ change: KeyChange
    ) async throws(SigningRefusal) -> (identity: String, minimum: Int) {
        try await answering {
            guard caller.isAdministrator else {
                try await store.writeRefusal(
                    .signingKeys, .forbidden, user: caller.session.user.id, ["act": change.rawValue])
                throw SigningRefusal(.forbidden)
            }
            try requireFreshness(of: caller, at: now)
            switch change {
            case .rotateIdentity: try await keys.rotateIdentity(by: caller.session.user.id)
            case .withdrawOnlineKeys: try await keys.withdrawOnlineKeys(by: caller.session.user.id)
            }
            let now = try await keys.current()
            return (try now.requiredIdentity.thumbprint.text, now.minimum)
        }
    }
}
