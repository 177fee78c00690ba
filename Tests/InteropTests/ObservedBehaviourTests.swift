import AssentCore
import AssentJOSE
import AssentPeers
import AssentTesting
import AssentTokens
import AssentVault
import Foundation
import HTTPTypes
import TestSupport
import Testing

/// What real providers were seen to do, each at one that does it.
@Suite("Behaviour of real providers", .ourServer)
struct ObservedBehaviourTests {
    private func manager(
        _ configuration: TokenConfiguration, _ transport: any HTTPTransport, _ session: Session?,
        clock: any WallClock = OurServer.GoingClock()
    ) async throws -> TokenManager {
        let manager = TokenManager(
            configuration: configuration, transport: transport, store: MemorySecretStore(), clock: clock)
        if let session { try await manager.install(session) }
        return manager
    }

    private func failure(of manager: TokenManager) async -> TokenError? {
        do {
            _ = try await manager.tokens()
            return nil
        } catch {
            return error as? TokenError
        }
    }

    @Test("1. An error that is none of RFC 6749's, 403 invalid_code, is passed on as what it is")
    func foreignError() async throws {
        let provider = try await Glewlwyd.shared
        // The code has been used already when the SDK uses it.
        let transport = Tampering(try PeerClient.transport()) { call, reply, base in
            call.isTo("/token") ? try await base.send(call) : reply
        }
        let manager = try await manager(provider.configuration(), transport, try await provider.session())
        let error = try #require(await failure(of: manager))
        #expect(error.code == .tokenRefused && error.status == 403 && error.oauthError == "invalid_code")
        #expect(!error.isTransient)
        #expect(try await manager.session() != nil)
    }

    @Test("1. An error with an empty body, 400 and 401, is a refusal, not a reply that cannot be read")
    func emptyError() async throws {
        let provider = try await Glewlwyd.shared
        let clock = OurServer.GoingClock()
        let transport = Tampering(try PeerClient.transport())
        let manager = try await manager(provider.configuration(), transport, try await provider.session(), clock: clock)
        let tokens = try await manager.tokens()
        let refresh = FormItems([
            "grant_type": "refresh_token", "client_id": Glewlwyd.publicClient,
            "refresh_token": try #require(tokens.refreshToken).reveal(),
        ])
        let client = try PeerClient()
        #expect(try await client.post(provider.issuer + "/token", form: refresh).status == 200)
        let empty = try await client.post(provider.issuer + "/token", form: refresh)
        #expect(empty.status == 400 && empty.bytes.isEmpty)

        // Nobody knows what it means, so the session has to help; the refresh token may still be good.
        clock.advance(by: 550)
        let renewed = try await manager.tokens()
        #expect(renewed.accessToken != tokens.accessToken)
        #expect(
            transport.sent.map { URLText.withoutQuery($0) }.suffix(3)
                == ["POST /api/oidc/token", "GET /api/oidc/auth", "POST /api/oidc/token"])

        let undone = try #require(await manager.signOut().undone.first)
        #expect(undone.step == .revokeTokens && undone.reason.contains("401"))
    }

    @Test("2. An ID token for nobody, aud: [], is refused")
    func emptyAudience() async throws {
        let provider = try await BadProvider.shared
        let manager = try await manager(
            provider.configuration(client: "empty-audience"), try BadProvider.user(), Session(token: Secret("none")))
        let error = try #require(await failure(of: manager))
        #expect(error.code == .invalidIDToken && error.detail.contains("wrongAudience"), "\(error)")
        #expect(try await manager.storedTokens() == nil)
    }

    @Test("3. Without a revocation endpoint signing out clears what is here and says what could not be revoked")
    func noRevocation() async throws {
        let provider = try await BadProvider.shared
        let manager = try await manager(
            provider.configuration(), try BadProvider.user(), Session(token: Secret("none")))
        _ = try await manager.tokens()
        let result = await manager.signOut()
        #expect(result.localFailure == nil && !result.isComplete)
        #expect(result.undone.map(\.step) == [.revokeTokens])
        #expect(result.undone.first?.reason.contains("has no revocation_endpoint") == true)
        #expect(try await manager.storedTokens() == nil)
        #expect(try await manager.session() == nil)
    }

    @Test(
        "4. A refresh token that comes anew replaces the old one; where none comes, the old one is kept",
        arguments: [true, false])
    func rotation(rotates: Bool) async throws {
        let provider = try await Glewlwyd.shared
        let clock = OurServer.GoingClock()
        let manager = try await manager(
            provider.configuration(issuer: rotates ? provider.issuer : provider.keepingIssuer),
            try PeerClient.transport(), try await provider.session(), clock: clock)
        var seen = [try #require(try await manager.tokens().refreshToken).reveal()]
        for _ in 0..<2 {
            clock.advance(by: 700)
            seen.append(try #require(try await manager.tokens().refreshToken).reveal())
        }
        #expect(Set(seen).count == (rotates ? 3 : 1))
        #expect(try await manager.storedTokens()?.refreshToken?.reveal() == seen.last)
    }

    @Test("5. iss is required where the metadata promises it, absent elsewhere, and never another's")
    func callbackIssuer() async throws {
        let ours = try #require(OurServer.current)
        let stripping: Tampering.Change = { call, reply, _ in
            guard call.isTo("/authorize") else { return reply }
            return reply.redirecting { $0.replacing(/&?iss=[^&]*/, with: "") }
        }
        let promised = try await manager(
            ours.configuration(), Tampering(ours.transport, change: stripping), try await ours.signIn(),
            clock: ours.clock)
        #expect(try await promised.metadata().sendsIssuer)
        #expect(await failure(of: promised)?.code == .foreignAnswer)

        let bad = try await BadProvider.shared
        let absent = try await manager(bad.configuration(), try BadProvider.user(), Session(token: Secret("none")))
        #expect(try await !absent.metadata().sendsIssuer)
        _ = try await absent.tokens()

        // glewlwyd sends it and promises nothing.
        let glewlwyd = try await Glewlwyd.shared
        let unpromised = Tampering(try PeerClient.transport()) { call, reply, _ in
            guard call.isTo("/auth") else { return reply }
            return reply.redirecting { location in
                #expect(location.contains("iss="))
                return location.replacing(/iss=[^&]*/, with: "iss=https%3A%2F%2Fevil.example")
            }
        }
        let foreign = try await manager(glewlwyd.configuration(), unpromised, try await glewlwyd.session())
        #expect(try await !foreign.metadata().sendsIssuer)
        #expect(await failure(of: foreign)?.code == .foreignAnswer)
    }

    @Test("6. Endpoints are used as they are written: //api/oidc/auth stays that")
    func opaqueEndpoints() async throws {
        let provider = try await Glewlwyd(doublesSlash: true)
        defer { provider.stop() }
        let clock = OurServer.GoingClock()
        let transport = Tampering(try PeerClient.transport())
        let manager = try await manager(provider.configuration(), transport, try await provider.session(), clock: clock)
        _ = try await manager.tokens()
        clock.advance(by: 700)
        _ = try await manager.tokens()
        _ = try await manager.userInfo()
        let sent = transport.sent.map { URLText.withoutQuery($0) }
        for expected in [
            "GET //api/oidc/auth", "POST //api/oidc/token", "GET //api/oidc/jwks", "GET //api/oidc/userinfo",
        ] {
            #expect(sent.contains(expected), "\(sent)")
        }
    }

    @Test("7. localhost and 127.0.0.1 are two hosts: to issuers, to redirects, to cookies")
    func loopbackNames() async throws {
        let ours = try #require(OurServer.current)
        let session = try await ours.signIn()
        for uri in ["http://127.0.0.1:9999/cb", "http://localhost:9999/cb"] {
            let manager = try await manager(
                ours.configuration(redirectURI: uri), ours.transport, session, clock: ours.clock)
            _ = try await manager.tokens()
            let other = uri.contains("localhost") ? "http://127.0.0.1:9999/cb" : "http://localhost:9999/cb"
            let swapped = Tampering(ours.transport) { call, reply, _ in
                call.isTo("/authorize") ? reply.redirecting { $0.replacing(uri, with: other) } : reply
            }
            let refused = try await self.manager(
                ours.configuration(redirectURI: uri), swapped, session, clock: ours.clock)
            #expect(await failure(of: refused)?.code == .unexpectedRedirect)
        }
        // Registered is http://127.0.0.1/cb alone.
        let unregistered = try await manager(
            ours.configuration(client: "elsewhere", redirectURI: "http://localhost:9999/cb"), ours.transport, session,
            clock: ours.clock)
        #expect(await failure(of: unregistered)?.oauthError == "redirect_uri_mismatch")

        let glewlwyd = try await Glewlwyd.shared
        let otherName = try await manager(
            glewlwyd.configuration(issuer: glewlwyd.issuer.replacing("127.0.0.1", with: "localhost")),
            try PeerClient.transport(), try await glewlwyd.session())
        #expect(await failure(of: otherName)?.code == .issuerMismatch)

        let cookies = CookieStore(clock: ManualClock(Date()))
        let numeric = try Origin(glewlwyd.base)
        let named = try Origin(glewlwyd.base.replacing("127.0.0.1", with: "localhost"))
        await cookies.store(["GLEWLWYD2_SESSION_ID=secret; Path=/"], from: numeric, path: "/")
        #expect(await cookies.cookies(for: numeric, path: "/").count == 1)
        #expect(await cookies.cookies(for: named, path: "/").isEmpty)
    }

    @Test("8. A client's secret, which a machine has made, is kept as one SHA-256, not stretched, and checked")
    func secretsAreNotStretched() async throws {
        let ours = try #require(OurServer.current)
        let client = try PeerClient(ours.transport)
        func reply(secret: String) async throws -> (status: Int, error: JSONValue?) {
            let reply = try await client.post(
                ours.issuer + "/access_token",
                form: FormItems(["grant_type": "refresh_token", "refresh_token": "none"] as KeyValuePairs),
                fields: [.authorization: "Basic \(Data("web:\(secret)".utf8).base64EncodedString())"])
            return (reply.status, reply.json["error"])
        }
        // The configuration of this server holds the secret's SHA-256 and nothing else.
        let right = try await reply(secret: OurServer.webSecret.reveal())
        #expect(right.status == 400 && right.error == "invalid_grant")
        let wrong = try await reply(secret: OurServer.webSecret.reveal() + "x")
        #expect(wrong.status == 401 && wrong.error == "invalid_client")
    }

    @Test("9. The pin that openssl's pipeline prints when it could not fetch the certificate is refused")
    func pinOfNothing() async throws {
        let reserved = try ReservedPort()
        defer { withExtendedLifetime(reserved) {} }
        let port = reserved.port
        let pipeline = """
            openssl s_client -connect 127.0.0.1:\(port) </dev/null 2>/dev/null | openssl x509 -pubkey -noout 2>/dev/null \
            | openssl pkey -pubin -outform der 2>/dev/null | openssl dgst -sha256 -binary | openssl base64
            """
        let printed = try FinishedProcess.run("/bin/sh", ["-c", pipeline]).text
            .trimmingCharacters(in: .whitespacesAndNewlines)
        #expect(printed == "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=")
        #expect(throws: PinError.digestOfNothing) { try Pin(printed) }
    }
}
