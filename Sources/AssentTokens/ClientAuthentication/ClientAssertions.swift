import AssentCore
import AssentJOSE

/// Makes the assertions by which the client authenticates (RFC 7523 §3), each for one sending: a server takes each
/// once, so that a request that goes out again has another.
actor ClientAssertions {
    /// How many seconds an assertion is good: long enough for a slow network and for clocks that differ a little, short
    /// enough that one that lies about somewhere is worth nothing, and that servers remember it for a minute only.
    static let lifetime: Int64 = 60

    /// The value of `client_assertion_type` (RFC 7523 §2.2).
    static let type = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

    private let place: ClientKey.Place?
    private let issuer: String
    private let clientID: String
    private let clock: any WallClock
    private let random: any RandomSource
    private var found: ClientKey?

    init(_ configuration: TokenConfiguration, clock: any WallClock, random: any RandomSource) {
        place = configuration.clientAuthentication.key
        issuer = configuration.issuer
        clientID = configuration.clientID
        self.clock = clock
        self.random = random
    }

    /// Makes sure that the key is there, before somebody is asked to sign in for nothing.
    func check() async throws {
        if let place { _ = try await key(at: place) }
    }

    /// A form that says who sends it, for one sending. `client_id` stays in it: it must agree (RFC 7521 §4.2), and some
    /// servers find the client by it.
    func authenticated(_ form: FormItems) async throws -> FormItems {
        guard let place else { return form }
        var form = form
        form.append("client_assertion_type", Self.type)
        form.append("client_assertion", try await assertion(at: place).reveal())
        return form
    }

    /// Looks for the key again at the next request: another process may have replaced it.
    func forget() { found = nil }

    /// What it means that the server answered with this `error`, and what to do; `nil` when it is not about the
    /// assertion. The next request looks for the key again.
    func refusal(_ error: String?) -> (detail: String, suggestion: String)? {
        guard let place, error == "invalid_client" else { return nil }
        let kid = found.map { " (kid \($0.publicKey.thumbprint))" } ?? ""
        found = nil
        return (
            "The provider did not accept the assertion by which the client \(clientID) authenticates.",
            "Register the public half of the client key \(ClientKey.shown(place.name))\(kid) at the provider, with "
                + "private_key_jwt, and check this machine's clock."
        )
    }

    private func assertion(at place: ClientKey.Place) async throws -> Secret {
        let key = try await key(at: place)
        var claims = JWTClaims()
        claims.iss = clientID
        claims.sub = clientID
        // The issuer as a string, which every profile takes (FAPI 2.0 §5.3.3.1), and never an address that the
        // provider's description of itself names: so no assertion is good at another server.
        claims["aud"] = .string(issuer)
        claims.jti = random.token()
        let now = clock.epochSeconds
        claims["iat"] = .integer(now)
        claims["exp"] = .integer(now + Self.lifetime)
        let header = JSONObject([
            .init(name: "typ", value: "JWT"), .init(name: "kid", value: .string(key.publicKey.thumbprint)),
        ])
        do {
            return Secret(try await JWS.sign(claims.payload, header: header, with: key.key))
        } catch let error as KeyProviderError {
            found = nil
            throw TokenError(clientKey: place.name, error)
        } catch let error as JOSEError {
            found = nil
            throw TokenError(
                .clientKeyUnavailable,
                "The client key \(ClientKey.shown(place.name)) cannot be used: \(error.explanation)")
        }
    }

    private func key(at place: ClientKey.Place) async throws -> ClientKey {
        if let found { return found }
        let key = try await ClientKey.find(named: place.name, at: place.provider)
        found = key
        return key
    }
}
