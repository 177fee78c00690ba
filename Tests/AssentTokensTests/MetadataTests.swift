import AssentCore
import AssentTesting
import AssentTokens
import Testing

@Suite struct MetadataTests {
    private func metadata(_ change: (inout JSONObject) -> Void) throws -> ProviderMetadata {
        var json = try FakeProvider().behaviour.withLock { $0.discovery }
        change(&json)
        return try ProviderMetadata(json, issuer: issuer)
    }

    @Test("Endpoints are taken exactly as they are written")
    func opaque() throws {
        let odd = "https://AS.example:443/a/../b//%7e?x=%2f&y"
        #expect(try metadata { $0["token_endpoint"] = .string(odd) }.tokenEndpoint == odd)
    }

    @Test(
        "Another issuer's document is refused",
        arguments: [nil, "", .string(issuer + "/"), .string(issuer.uppercased()), "https://evil.example", 5]
            as [JSONValue?])
    func issuers(value: JSONValue?) {
        #expect(throws: TokenError.like(.issuerMismatch)) { try metadata { $0["issuer"] = value } }
    }

    @Test(
        "An endpoint that nothing may be sent to is refused",
        arguments: [
            "http://am.example.com/t", "ftp://am.example.com", "https://u:p@am.example.com/t", "/relative", "",
            "https://am.example.com/t#f", "javascript:alert(1)", "https://a b/",
        ],
        [
            "token_endpoint", "authorization_endpoint", "jwks_uri", "userinfo_endpoint", "revocation_endpoint",
            "end_session_endpoint",
        ])
    func endpoints(url: String, name: String) {
        #expect(throws: TokenError.like(.unusableEndpoint)) { try metadata { $0[name] = .string(url) } }
    }

    @Test("This machine may be reached without TLS, and what is optional may be missing")
    func loopback() throws {
        let found = try metadata {
            $0["token_endpoint"] = "http://127.0.0.1:8080/t"
            $0["end_session_endpoint"] = nil
            $0["userinfo_endpoint"] = .null
        }
        #expect(found.tokenEndpoint == "http://127.0.0.1:8080/t" && found.endSessionEndpoint == nil)
        #expect(found.sendsIssuer && !found.knowsRefreshAttempts)
    }

    @Test("What must be there must be there", arguments: ["token_endpoint", "authorization_endpoint"])
    func missing(name: String) {
        #expect(throws: TokenError.like(.unusableEndpoint)) { try metadata { $0[name] = nil } }
        #expect(throws: TokenError.like(.malformedReply)) { try metadata { $0[name] = 5 } }
        #expect(throws: TokenError.like(.malformedReply)) {
            try metadata { $0["code_challenge_methods_supported"] = ["plain"] }
        }
    }

    @Test("Recorded documents are read, or refused for naming no issuer", .enabled(if: fixtures != nil))
    func recorded() throws {
        let ping = try #require(try fixture("fr/discovery.json").object)
        let found = try ProviderMetadata(ping, issuer: ping["issuer"]?.string ?? "")
        #expect(found.endSessionEndpoint?.hasSuffix("/as/signoff") == true)
        let idp = try #require(try fixture("fr/discoveryWithPingEndIdp.json")["responsePayload"]?.object)
        let other = try ProviderMetadata(idp, issuer: idp["issuer"]?.string ?? "")
        #expect(other.endSessionEndpoint == idp["ping_end_idp_session_endpoint"]?.string)
        let aic = try #require(try fixture("ping/oidc-openid-configuration-aic.json").object)
        #expect(throws: TokenError.like(.issuerMismatch)) { try ProviderMetadata(aic, issuer: issuer) }
    }

    @Test(
        "A configuration that cannot work is refused",
        arguments: [
            ("http://am.example.com", "c", "a:/b", ["openid"]), ("https://am.example.com?x", "c", "a:/b", []),
            ("https://am.example.com#x", "c", "a:/b", []), (issuer, "", "a:/b", []), (issuer, "c d", "a:/b", []),
            (issuer, "c", "", []), (issuer, "c", "https://b/#f", []), (issuer, "c", "nothing", []),
            (issuer, "c", "a:/b", ["a b"]), (issuer, "c", "a:/b", [""]),
        ])
    func configuration(issuer: String, client: String, redirect: String, scopes: [String]) {
        #expect(throws: TokenError.like(.invalidConfiguration)) {
            try TokenConfiguration(issuer: issuer, clientID: client, redirectURI: redirect, scopes: scopes)
        }
    }
}
