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
        #expect(again.count == (answer.mayPass ? 1 : 0))
        for exchange in again {
            let told = exchange.form["token"] ?? exchange.query["id_token_hint"]
            #expect(told == (step == .revokeTokens ? tokens.refreshToken : tokens.idToken?.text)?.reveal())
        }
        #expect(await provider.store.names().isEmpty)
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
        #expect(result.undone.first?.reason.contains("\(member) is missing") == true)
        #expect(provider.sent(other).count == 1)
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
        #expect(provider.sent("/token/revoke").count == 1 && provider.sent("/connect/endSession").count == 1)
        #expect(await provider.store.names().isEmpty)
    }
}
