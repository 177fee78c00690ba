import AssentCore
import AssentTesting
import AssentTokens
import AssentVault
import HTTPTypes
import Testing

/// What a provider may answer to a sign-out, and what it means.
private enum Answer: String, CaseIterable, CustomTestStringConvertible {
    case noContent, empty, json, accepted, page, typelessPage, error, redirect, notFound, tooMany, unavailable,
        unreachable

    var testDescription: String { rawValue }

    /// Whether it says that it was done. A page asks the user (RP-Initiated Logout 1.0 §2), and nobody answers it.
    var isDone: Bool { [.noContent, .empty, .json].contains(self) }

    /// Whether asking again may help.
    var mayPass: Bool { [.tooMany, .unavailable, .unreachable].contains(self) }

    func reply() throws -> HTTPReply {
        let page = HTTPBody("\n<!doctype html><title>Sign out?</title>")
        return switch self {
        case .noContent: HTTPReply(HTTPResponse(status: .noContent))
        case .empty: HTTPReply(HTTPResponse(status: .ok, headerFields: [.contentType: "text/html"]))
        case .json: .json(200, [:])
        case .accepted: HTTPReply(HTTPResponse(status: .accepted))
        case .page:
            HTTPReply(HTTPResponse(status: .ok, headerFields: [.contentType: "Text/HTML; charset=utf-8"]), body: page)
        case .typelessPage: HTTPReply(HTTPResponse(status: .ok), body: page)
        case .error: .json(200, ["error": "invalid_request"])
        case .redirect:
            HTTPReply(HTTPResponse(status: .found, headerFields: [.location: "\(issuer)/logged-out"]))
        case .notFound: .json(404, [:])
        case .tooMany: .json(429, [:])
        case .unavailable: .json(503, [:])
        case .unreachable: throw HTTPTransportError(.connectFailed, "offline")
        }
    }
}

@Suite("Ending a provider's session and revoking there") struct EndSessionTests {
    /// Somebody with tokens and no AM session, as after a sign-in in a browser.
    private func signedIn(_ provider: FakeProvider) async throws -> (TokenManager, TokenSet) {
        let manager = try await provider.signedIn()
        let tokens = try await manager.tokens()
        let session = try #require(await provider.store.names().first { $0.hasPrefix("session") })
        try await provider.store.update(session, to: nil, expected: .any)
        provider.clock.advance(by: 6)
        return (manager, tokens)
    }

    @Test(
        "An answer means that it is done, that it never will be, or that it is tried again when the app asks",
        arguments: Answer.allCases, ["/connect/endSession", "/token/revoke"])
    fileprivate func answers(answer: Answer, endpoint: String) async throws {
        let provider = try FakeProvider()
        let (manager, tokens) = try await signedIn(provider)
        provider.change {
            $0.other = { exchange in
                let isThis = URLText.withoutQuery(exchange.request.url ?? "").hasSuffix(endpoint)
                return isThis ? try answer.reply() : HTTPReply(HTTPResponse(status: .noContent))
            }
        }
        let step = endpoint == "/token/revoke" ? SignOutResult.Step.revokeTokens : .endProviderSession
        let result = await manager.signOut()
        #expect(result.undone.map(\.step) == (answer.isDone ? [] : [step]))
        #expect(result.undone.allSatisfy { $0.isKept == answer.mayPass && !$0.reason.isEmpty })
        #expect(result.localFailure == nil && result.isComplete == answer.isDone)
        #expect(try await manager.storedTokens() == nil)
        #expect(await provider.store.names().allSatisfy { $0.hasPrefix("signout.") })

        #expect(try await manager.pendingSignOuts() == (answer.mayPass ? [step] : []))
        provider.change { $0.other = nil }
        let before = provider.sent(endpoint).count
        #expect(try await manager.retrySignOuts().isEmpty)
        let again = provider.sent(endpoint).dropFirst(before)
        let told = again.map { $0.form["token"] ?? $0.query["id_token_hint"] }
        let secrets = step == .revokeTokens ? [tokens.refreshToken, tokens.accessToken] : [tokens.idToken?.text]
        #expect(told == (answer.mayPass ? secrets.map { $0?.reveal() } : []))
        #expect(await provider.store.names().isEmpty)
    }

    @Test("A provider's session in a browser ends in the browser: its page is opened, and nothing else is asked")
    func browser() async throws {
        let provider = try FakeProvider()
        let (manager, tokens) = try await signedIn(provider)
        let opened = Locked<[String]>([])
        let result = await manager.signOut(returningTo: "https://bank.example/bye?a=b") { url in
            opened.withLock { $0.append(url) }
        }
        #expect(result.isComplete && opened.withLock { $0.count } == 1)
        let url = try #require(opened.withLock { $0.first })
        let query = try FormEncoding.parse(URLText.query(of: url)?.text ?? "")
        #expect(url.hasPrefix("\(issuer)/connect/endSession?"))
        #expect(query["id_token_hint"] == tokens.idToken?.text.reveal() && query["client_id"] == "bank-app")
        #expect(query["post_logout_redirect_uri"] == "https://bank.example/bye?a=b")
        #expect(provider.sent("/connect/endSession").isEmpty && provider.sent("/token/revoke").count == 2)
        #expect(await provider.store.names().isEmpty)
    }

    @Test("With an AM session no browser is opened; without a network the page is not lost")
    func noBrowser() async throws {
        let provider = try FakeProvider()
        let manager = try await provider.signedIn()
        _ = try await manager.tokens()
        #expect(await manager.signOut { _ in Issue.record("opened") }.isComplete)
        _ = try await signedIn(provider)
        provider.change { $0.discoveryReply = { throw HTTPTransportError(.connectFailed, "offline") } }
        let restarted = try provider.manager()
        let result = await restarted.signOut { _ in Issue.record("opened") }
        #expect(
            result.undone.map(\.step) == [.revokeTokens, .endProviderSession] && result.undone.allSatisfy(\.isKept))
    }

    @Test("A provider that ends only what it is told: both tokens are revoked, the refresh token first")
    func both() async throws {
        let provider = try FakeProvider()
        let (manager, tokens) = try await signedIn(provider)
        provider.change {
            // It refuses the first for good, which does not save the second.
            $0.other = { $0.form["token_type_hint"] == "refresh_token" ? .json(400, [:]) : .json(200, [:]) }
        }
        #expect(await manager.signOut().undone.map(\.step) == [.revokeTokens])
        let sent = provider.sent("/token/revoke").map { ($0.form["token_type_hint"], $0.form["token"]) }
        #expect(sent.map(\.0) == ["refresh_token", "access_token"])
        #expect(sent.map(\.1) == [tokens.refreshToken?.reveal(), tokens.accessToken.reveal()])
    }

    @Test(
        "An endpoint that the provider does not have is named, the other one is told all the same",
        arguments: [
            ("revocation_endpoint", SignOutResult.Step.revokeTokens, "/connect/endSession"),
            ("end_session_endpoint", .endProviderSession, "/token/revoke"),
        ])
    func missing(member: String, step: SignOutResult.Step, other: String) async throws {
        let provider = try FakeProvider()
        provider.change { $0.discovery[member] = nil }
        let (manager, _) = try await signedIn(provider)
        let result = await manager.signOut()
        #expect(result.undone.map(\.step) == [step] && result.undone.allSatisfy { !$0.isKept })
        #expect(result.undone.first?.reason.contains("has no \(member)") == true)
        #expect(provider.sent(other).count == (other == "/token/revoke" ? 2 : 1))
        #expect(await provider.store.names().isEmpty)
    }

    @Test("A provider that cannot even be described keeps nothing here, and is told when it is back")
    func noDescription() async throws {
        let provider = try FakeProvider()
        _ = try await signedIn(provider)
        provider.change { $0.discoveryReply = { throw HTTPTransportError(.connectFailed, "offline") } }
        let restarted = try provider.manager()
        let result = await restarted.signOut()
        #expect(result.undone.map(\.step) == [.revokeTokens, .endProviderSession])
        #expect(result.undone.allSatisfy(\.isKept) && result.localFailure == nil)
        #expect(await provider.store.names().allSatisfy { $0.hasPrefix("signout.") })
        provider.change { $0.discoveryReply = nil }
        #expect(try await restarted.retrySignOuts().isEmpty)
        #expect(provider.sent("/token/revoke").count == 2 && provider.sent("/connect/endSession").count == 1)
        #expect(await provider.store.names().isEmpty)
    }
}
