import AssentCore
package import AssentJOSE

/// Who signs software statements for an app (RFC 7591 §2.3), and with which keys.
package struct SoftwareStatements: Sendable, Hashable {
    /// The value of `iss`.
    package var issuer: String

    /// The public keys.
    package var keys: JWKSet

    /// How many bytes a statement may have.
    static let limit = 8192

    /// A statement that says what it is for may say this.
    private static let types = ["jwt", "software-statement+jwt"]

    /// Statements of an issuer.
    package init(issuer: String, keys: JWKSet) {
        self.issuer = issuer
        self.keys = keys
    }

    /// What a statement says of an app.
    ///
    /// - Parameters:
    ///   - text: the statement.
    ///   - app: the app's id, which it must name.
    ///   - clock: where the time comes from.
    /// - Returns: its claims.
    /// - Throws: ``OAuthError`` `unapproved_software_statement` for one of somebody else or for another app,
    ///   `invalid_software_statement` for one that is malformed, out of its time, or signed by other keys.
    func claims(of text: String, app: String, clock: any WallClock) throws(OAuthError) -> JSONObject {
        do {
            let message = try UnverifiedJWS.parse(text, limit: Self.limit)
            guard try JWTClaims(payload: message.payload).iss == issuer else {
                throw OAuthError(.unapprovedSoftwareStatement, "The software statement is of another issuer.")
            }
            let verified = try message.verified(with: keys, algorithms: Set(ClientKeys.usualAlgorithms))
            guard verified.type.map({ Self.types.contains($0.lowercased()) }) ?? true else {
                throw JOSEError(.wrongType, "The header's typ is of something else than a software statement.")
            }
            let claims = try JWTValidation(
                issuer: issuer, audience: nil, clock: clock, requiredClaims: ["iss"]
            ).validate(verified)
            guard claims["software_id"]?.string == app else {
                throw OAuthError(.unapprovedSoftwareStatement, "The software statement is for another app.")
            }
            return claims.object
        } catch let error as OAuthError {
            throw error
        } catch {
            let detail = (error as? JOSEError)?.detail ?? "It cannot be read."
            throw OAuthError(.invalidSoftwareStatement, "The software statement is not valid. \(detail)")
        }
    }
}
