import AssentCore
import AssentTokens
import AssentVault
import Foundation
import HTTPTypes
import TestSupport

/// Runs rows of the table against a provider.
package struct TokenTableRunner: Sendable {
    /// What came of a row.
    private struct Outcome {
        var returned: TokenTableRow.Returned
        var left: TokenTableRow.Left
        var sessionLeft: TokenTableRow.SessionLeft
        var sent: [TokenTableRow.Request]
        var next: TokenTableRow.Returned
    }

    private let world: ProviderWorld
    private let transport: any HTTPTransport
    /// What a client sends by where a reply does not come.
    private let hasty: any HTTPTransport

    package init(_ world: ProviderWorld) throws {
        self.world = world
        transport = try world.transport()
        hasty = Hasty(base: try world.transport(leastLimit: nil))
    }

    /// Waits for two seconds for the token endpoint, and for anything else as long as it takes: on a busy machine only
    /// the reply that does not come is given up.
    private struct Hasty: HTTPTransport {
        let base: any HTTPTransport

        @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
            let long = Duration.seconds(Patience.seconds)
            var call = call
            call.limits = HTTPLimits(
                connect: long, read: call.request.method == .post ? .seconds(2) : long, total: long,
                replyBytes: call.limits.replyBytes)
            return try await base.send(call)
        }
    }

    /// What is not as the row says; empty when all is.
    package func differences(_ row: TokenTableRow) async throws -> [String] {
        try await world.relay.reset()
        let isKilled = [.killedBefore, .killedAfter].contains(row.answer)
        let directory = isKilled ? try TemporaryVault() : nil
        let store: any SecretStore =
            if let directory { try await directory.open() } else { MemorySecretStore() }
        let old = try await prepare(row, store)
        try await world.relay.reset()
        let metadata = try await world.manager(store, transport).metadata()
        if row.answer == .invalidGrant, row.sent.contains(.refresh), world.saysInvalidGrant,
            let refreshToken = try await StoredRecords(store).refreshToken()
        {
            try await world.spend(refreshToken, at: metadata.tokenEndpoint)
            try await world.relay.reset()
        }
        let outcome =
            if let directory {
                try await killed(row, store, directory, old)
            } else {
                try await called(row, store, old)
            }
        return compare(outcome, row)
    }

    private func compare(_ outcome: Outcome, _ row: TokenTableRow) -> [String] {
        var differences: [String] = []
        func expect<Value: Equatable>(_ name: String, _ found: Value, _ expected: Value) {
            if found != expected { differences.append("\(name): \(found), not \(expected)") }
        }
        let elsewhere = row.nextElsewhere ?? row.next
        let foreign = world.saysInvalidGrant ? elsewhere : row.nextWithoutReason ?? elsewhere
        let next = world.repeatsAnswers ? row.next : foreign
        expect("returned", outcome.returned, row.returned)
        expect("stored afterwards", outcome.left, row.left)
        expect("session afterwards", outcome.sessionLeft, row.sessionLeft)
        expect("sent", outcome.sent, row.sent)
        expect("the next call", outcome.next, next)
        return differences
    }

    /// Puts into the store what the row says; returns the access token.
    private func prepare(_ row: TokenTableRow, _ store: any SecretStore) async throws -> Secret? {
        let manager = try world.manager(store, transport)
        let records = StoredRecords(store)
        try await manager.install(world.sessions.mine)
        let tokens = row.stored == .none ? nil : try await manager.tokens()
        let now = Int64(Date().timeIntervalSince1970)
        try await records.changeTokens { record in
            if !row.hasRefreshToken { record["refresh_token"] = nil }
            switch row.stored {
            case .none, .good, .rejected: break
            case .endless: record["expires_at"] = nil
            case .closing: record["expires_at"] = .integer(now + 50)
            case .expired: record["expires_at"] = .integer(now - 5)
            case .future:
                record["expires_at"] = .integer(now + 7200)
                record["obtained_at"] = .integer(now + 3600)
            }
        }
        switch row.session {
        case .same: break
        case .none: try await records.remove("session.")
        case .other: try await records.setSession(world.sessions.others.token)
        case .ended:
            let ended = Secret(SystemRandom().token())
            try await records.setSession(ended)
            let fingerprint = Base64URL.encode(SHA2.sha256(ended.revealBytes()))
            try await records.changeTokens { $0["session"] = .string(fingerprint) }
        }
        return tokens?.accessToken
    }

    private func called(_ row: TokenTableRow, _ store: any SecretStore, _ old: Secret?) async throws -> Outcome {
        let relay = world.relay
        let manager = try world.manager(store, row.answer == .timeout ? hasty : transport)
        _ = try await manager.metadata()
        try await relay.reset()
        try await arm(row)
        let rejected = row.stored == .rejected ? old : nil
        let returned: TokenTableRow.Returned
        if row.answer == .cancelled {
            let asking = Task { try await manager.tokens(rejecting: rejected) }
            await relay.state.wait { $0.answered.last == row.sent.last }
            asking.cancel()
            returned = await Self.returned(old) { try await asking.value }
            relay.release()
        } else {
            returned = await Self.returned(old) { try await manager.tokens(rejecting: rejected) }
            // The client may have given up before a slow provider had the request.
            if row.answer == .timeout { await relay.state.wait { $0.answered.last == row.sent.last } }
        }
        let sent = relay.state.value.requests
        if row.answer == .cancelled {
            // The renewal goes on; whoever asks next gets what it brings.
            let next = try await world.manager(store, transport).tokens(rejecting: rejected).accessToken
            let left = try await left(store, old)
            let again = relay.state.value.requests == sent && left == .new
            let kept = try await StoredRecords(store).accessToken() == next.reveal()
            return Outcome(
                returned: returned, left: left, sessionLeft: try await sessionLeft(row, store), sent: sent,
                next: again && kept ? .stored : .new)
        }
        let left = try await left(store, old)
        let sessionLeft = try await sessionLeft(row, store)
        return Outcome(
            returned: returned, left: left, sessionLeft: sessionLeft, sent: sent, next: try await next(store))
    }

    /// The same in a process of its own, which ends in the middle.
    private func killed(
        _ row: TokenTableRow, _ store: any SecretStore, _ directory: TemporaryVault, _ old: Secret?
    ) async throws -> Outcome {
        let relay = world.relay
        let agent = try AgentProcess(world, vault: directory)
        guard await agent.ask("metadata") == "ok" else { throw AgentProcess.Failed() }
        try await relay.reset()
        guard let kind = row.sent.last else { throw AgentProcess.Failed() }
        relay.state.update { $0.faults[kind] = row.answer == .killedBefore ? .holdRequest : .swallowReply }
        agent.tell("tokens")
        await relay.state.wait { (row.answer == .killedBefore ? $0.requests : $0.answered).last == kind }
        agent.kill()
        let sent = relay.state.value.requests
        let left = try await left(store, old)
        let sessionLeft = try await sessionLeft(row, store)
        return Outcome(
            returned: .nothing, left: left, sessionLeft: sessionLeft, sent: sent, next: try await next(store))
    }

    /// What the next call gets when everything works.
    private func next(_ store: any SecretStore) async throws -> TokenTableRow.Returned {
        try await world.relay.reset()
        let stored = try await StoredRecords(store).accessToken()
        return await Self.returned(stored.map { Secret($0) }) { try await world.manager(store, transport).tokens() }
    }

    private func left(_ store: any SecretStore, _ old: Secret?) async throws -> TokenTableRow.Left {
        guard let now = try await StoredRecords(store).accessToken() else { return .none }
        return old.map { $0 == Secret(now) } == true ? .same : .new
    }

    private func sessionLeft(
        _ row: TokenTableRow, _ store: any SecretStore
    ) async throws -> TokenTableRow.SessionLeft {
        if try await StoredRecords(store).hasSession() { return .kept }
        return row.session == .none ? .none : .removed
    }

    private static func returned(
        _ old: Secret?, _ body: () async throws -> TokenSet
    ) async -> TokenTableRow.Returned {
        do {
            return try await body().accessToken == old ? .stored : .new
        } catch let error as TokenError {
            return error.signInReason.map { .signIn($0) } ?? .error(error.code)
        } catch is CancellationError {
            return .cancelled
        } catch {
            return .nothing
        }
    }

    private func arm(_ row: TokenTableRow) async throws {
        let relay = world.relay
        let kind: TokenTableRow.Request = row.sent.contains(.refresh) ? .refresh : .code
        func set(_ fault: FaultRelay.Fault, on kind: TokenTableRow.Request = kind) {
            relay.state.update { $0.faults[kind] = fault }
        }
        func reply(_ status: Int, _ error: String? = nil) {
            let body = error.map { #"{"error":"\#($0)"}"# } ?? ""
            set(.reply(status, body, type: "application/json"))
        }
        switch row.answer {
        case .none, .ok, .killedBefore, .killedAfter: break
        case .okWithoutRefreshToken: set(.withoutRefreshToken)
        case .invalidGrant: if kind == .code || !world.saysInvalidGrant { reply(400, "invalid_grant") }
        case .invalidGrantWith200: reply(200, "invalid_grant")
        case .invalidClient: reply(401, "invalid_client")
        case .unauthorizedClient: reply(400, "unauthorized_client")
        case .invalidScope: reply(400, "invalid_scope")
        case .tooMany: reply(429)
        case .tooManyWithInvalidGrant: reply(429, "invalid_grant")
        case .unavailable: reply(503, "temporarily_unavailable")
        case .unavailableWithInvalidGrant: reply(503, "invalid_grant")
        case .empty400: reply(400)
        case .empty200: reply(200)
        case .notJSON: set(.reply(200, "<html>Sign in to the network</html>", type: "text/html"))
        case .connectFailure, .authorizeUnreachable: try await relay.refuse()
        case .handshakeFailure:
            relay.state.update { $0.breaksConnections = true }
            await relay.disconnect()
        case .lost: set(.loseReply)
        case .timeout: set(.swallowReply)
        case .cancelled: set(.holdReply)
        case .authorizeUnavailable: set(.reply(503, "", type: "text/plain"), on: .authorize)
        case .authorizeRefuses:
            set(.reply(400, #"{"error":"invalid_scope"}"#, type: "application/json"), on: .authorize)
        }
    }
}
