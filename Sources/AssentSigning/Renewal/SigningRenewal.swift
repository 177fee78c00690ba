import AssentCore
import AssentSigningProtocol
import Foundation

/// How a renewal stands.
public struct SigningRenewal: Sendable, Hashable {
    /// The issuer's name, to be shown with the digits.
    public let issuerName: String

    /// The user's name, to be shown with the digits.
    public let userName: String

    /// The digits that the user types into the page that made the invite, in two groups of four; `nil` without a code.
    public let digits: String?

    /// Whether the new keys count.
    public let isDone: Bool
}

extension SigningContainer {
    /// Replaces all keys by new ones, under the server's present rules.
    ///
    /// Without an invite that is possible from ``renewableFrom`` to ``expiresAt``, and the old keys vouch for the new
    /// ones. With the invite of a reset it is possible at any time before ``expiresAt``; then the user types the digits
    /// of the result into the page that made the invite, and ``renewed()`` waits for that.
    ///
    /// Until the new keys count the old ones do. If it fails on the way, call it again with the same invite: it goes on
    /// where it was. Afterwards get the container anew (``SigningDevice/container(_:)``).
    ///
    /// Where keys are behind a password, the user types the current one, and it guards the new keys, too; only if the
    /// server's rules have become stricter a new one is asked for. After a reset the user chooses a new one.
    ///
    /// - Parameters:
    ///   - invite: what was scanned or typed, after a reset.
    ///   - password: asks the user for each password. Without it a container with passwords gets no new keys, and this
    ///     stops with code `passwordRequired`.
    /// - Returns: the digits, if there are any, and whether the new keys count already.
    /// - Throws: ``SigningError``: with code `fresh_authentication_required` before ``renewableFrom`` and, without an
    ///   invite, while a reset is under way; `key_expired`, `invalid_code`, `enrolment_void` when it took too long,
    ///   `wrongPassword` with what is left, `locked`, `credentialsLost` when the keys behind a password were destroyed
    ///   (ask for a reset); what `password` throws.
    @discardableResult
    public func renew(
        invite: SigningInvite? = nil, password: SigningPasswordPrompt? = nil
    ) async throws -> SigningRenewal {
        try await device.parts.renewals.renew(record, invite: invite, password: password)
    }

    /// Waits until the new keys of a renewal count: asks for the status every two seconds.
    ///
    /// - Returns: the container with its new keys.
    /// - Throws: ``SigningError`` with code `enrolment_void` when the renewal has ended without them;
    ///   `CancellationError`.
    public func renewed() async throws -> SigningContainer {
        while true {
            switch try await device.parts.renewals.finish(record) {
            case .done, .none: return try await device.container(id)
            case .waiting: try await device.parts.pause()
            case .over: throw SigningError(.enrolmentVoid)
            }
        }
    }
}
