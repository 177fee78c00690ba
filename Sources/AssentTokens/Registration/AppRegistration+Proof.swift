package import AssentCore
import AssentJOSE
package import HTTPTypes

extension AppRegistration {
    /// A DPoP proof by the key of the registration (RFC 9449 §4.2), with claims of our own.
    ///
    /// - Parameters:
    ///   - method: the request's method.
    ///   - url: where it goes.
    ///   - claims: what the proof says besides.
    ///   - nonce: the newest that the server gave.
    /// - Returns: the value of the field `DPoP`.
    /// - Throws: ``TokenError``: `notRegistered`, `clientKeyMissing`, `storageFailed`; what the key throws.
    package func proof(
        _ method: HTTPRequest.Method, url: String, claims: JSONObject, nonce: String?
    ) async throws -> String {
        guard let instance = try await current() else {
            throw TokenError(.notRegistered, "This installation is not registered at the provider.")
        }
        var claims = claims
        claims["nonce"] = nonce.map { .string($0) }
        return try await key(of: instance).prover.proof(
            method: method.rawValue, uri: url, more: claims, clock: clock, random: random)
    }
}
