package import HTTPTypes

/// The challenge of a resource whose user has signed in too weakly, or too long ago, for what is wanted: of the scheme
/// `Bearer`, `DPoP` or both (RFC 9470 §3).
package struct InsufficientAuthentication: Hashable, Sendable {
    /// The value of `error`.
    package static let errorCode = "insufficient_user_authentication"

    /// How many values are read.
    private static let valueLimit = 32

    /// The classes of sign-ins that would do, the preferred one first; empty when the resource names none.
    package let acrValues: [String]

    /// How many seconds ago the user may have signed in at most; `nil` when the resource does not say.
    package let maxAge: Int?

    /// Reads the challenge of a reply with status 401; `nil` when it has none, or several that differ.
    package init?(_ response: HTTPResponse) {
        guard response.status == .unauthorized else { return nil }
        let found = response.headerFields[values: .wwwAuthenticate].flatMap { (try? Challenge.parse($0)) ?? [] }
            .filter { challenge in
                challenge["error"] == Self.errorCode
                    && TokenScheme.allCases.contains { challenge.isScheme($0.rawValue) }
            }.map(Self.init)
        guard let first = found.first, found.allSatisfy({ $0 == first }) else { return nil }
        self = first
    }

    private init(_ challenge: Challenge) {
        acrValues = (challenge["acr_values"] ?? "").split(separator: " ").prefix(Self.valueLimit).map(String.init)
        maxAge = challenge["max_age"].flatMap(Int.init).flatMap { $0 >= 0 ? $0 : nil }
    }
}
