package import AssentAuthorization
package import AssentCore
import AssentJourney
package import AssentTokens
import HTTPTypes

/// Sends the requests of one kind: what a request is checked for before anything is sent, and what an answer is.
///
/// It is a class because each request hands it on, with a client that is large.
package final class ResourceCalls: Sendable {
    let kind: CallKind
    private let base: String?
    private let sessionField: String
    let random: any RandomSource
    let client: AuthorizedClient
    private let examine: @Sendable () throws(HTTPTransportError) -> IntegrityExamination?
    private let origins = OriginMemory()

    /// The usual limits of a call: no limit for the whole of it, and 16 MiB in memory.
    static let limits = HTTPLimits(total: nil, replyBytes: 16 << 20)

    /// Calls of a kind.
    ///
    /// - Parameters:
    ///   - kind: whose they are; `client` must have the source of the same kind.
    ///   - client: attaches credentials and steps up.
    ///   - base: what paths are appended to.
    ///   - sessionField: the name of the field that carries a session.
    ///   - random: where boundaries come from.
    ///   - examine: asks the probes, before a request is looked at.
    package init(
        _ kind: CallKind, client: AuthorizedClient, base: String?, sessionField: String, random: any RandomSource,
        examine: @escaping @Sendable () throws(HTTPTransportError) -> IntegrityExamination?
    ) {
        self.kind = kind
        self.client = client
        self.base = base
        self.sessionField = sessionField
        self.random = random
        self.examine = examine
    }

    /// What is sent of a request, or the reason why nothing is. It asks the probes first, and uses no network.
    ///
    /// Where the vault may have a later trust file that was not read yet, an origin that is not named is left to
    /// ``settled(_:)``.
    func checked(_ request: ResourceRequest) throws(ResourceError) -> HTTPCall {
        let examination: IntegrityExamination?
        do throws(HTTPTransportError) {
            examination = try examine()
        } catch {
            throw ResourceError(error, kind.domain)
        }
        var call = try request.httpCall(
            base: base, domain: kind.domain, sessionField: sessionField, limits: Self.limits, random: random,
            origins: origins)
        call.examination = examination
        do throws(ResourceError) {
            try admit(call)
        } catch {
            guard error.code == .hostRefused, !client.isSettled else { throw error }
        }
        return call
    }

    /// Waits until the vault was read, and refuses what ``checked(_:)-(ResourceRequest)`` could not know yet.
    ///
    /// - Returns: the call, with the time that is left of it.
    func settled(_ call: HTTPCall) async throws -> HTTPCall {
        guard !client.isSettled else { return call }
        let begun = client.clock.now
        try await client.configuration.settle?(call)
        try admit(call)
        return call.afterWaiting(since: begun, client.clock)
    }

    /// Whether the call's origin is named, with the kind.
    private func admit(_ call: HTTPCall) throws(ResourceError) {
        let access: ResourceAccess?
        do throws(WireError) {
            access = client.access(to: try call.origin)
        } catch {
            throw ResourceError(kind.domain, .invalidRequest, "The URL cannot be used: \(error.detail).")
        }
        guard let access else {
            throw ResourceError(kind.domain, .hostRefused, "The origin is not in the configuration.")
        }
        guard access.allows(kind) else {
            throw ResourceError(
                kind.domain, .hostRefused, "The origin does not get the credential of this kind of call: \(kind).")
        }
    }

    /// The same for a reply that goes to a file.
    func checked(_ download: ResourceDownload) throws(ResourceError) -> HTTPCall {
        var call = try checked(download.request)
        guard call.request.method == .get else {
            throw ResourceError(kind.domain, .invalidRequest, "Only what GET asks for is downloaded to a file.")
        }
        call.limits.replyBytes = max(call.limits.replyBytes, download.maximumBytes)
        return call
    }

    /// Sends a request for which nobody is asked. Nobody can suspend it or see how far it is: a ``Transfer`` would be
    /// for nothing.
    func send(_ request: ResourceRequest) async throws(ResourceError) -> ResourceResponse {
        let call = try checked(request)
        do {
            return try await response(to: call)
        } catch {
            throw ResourceError(error, kind) ?? ResourceError.unforeseen(error, kind)
        }
    }

    /// The same, with the reply's content in a file.
    func send(
        _ download: ResourceDownload, progress: (@Sendable (NetworkProgress) -> Void)? = nil
    ) async throws(ResourceError) -> ResourceResponse {
        var report: Transfer.Report?
        if let progress { report = Self.telling(progress) }
        return try await send(checked(download), download, report)
    }

    /// Keeps how far a call is, and tells it after each change.
    private static func telling(_ progress: @escaping @Sendable (NetworkProgress) -> Void) -> Transfer.Report {
        let current = Locked(NetworkProgress())
        return { change in
            progress(
                current.withLock { known in
                    change(&known)
                    return known
                })
        }
    }

    private func response(to call: HTTPCall) async throws -> ResourceResponse {
        try Task.checkCancellation()
        // Who signs in while the call waits has not asked for it.
        let signIn = client.signIn
        let reply = try await client.send(try await settled(call), of: signIn)
        try Task.checkCancellation()
        guard let whole = reply.body.inMemory else { return try await response(taking: reply, for: call) }
        // Mostly all of it has come with the header: there is nothing to take in piece by piece.
        guard whole.count <= call.limits.replyBytes else { throw ReplyIntake.tooLong }
        return ResourceResponse(reply.response, data: whole, reply.authorization)
    }

    private func response(taking reply: HTTPReply, for call: HTTPCall) async throws -> ResourceResponse {
        var received = try ReplyIntake(nil, upTo: call.limits.replyBytes, random: random)
        received.authorization = reply.authorization
        try received.begin(reply.response, length: reply.body.length, isRest: false, asksForPart: false)
        var reading = reply.body.makeAsyncIterator()
        repeat { try Task.checkCancellation() } while try await received.add(reading.next())
        guard let response = try received.finish() else { throw ReplyIntake.noReply }
        return response
    }

    private func send(
        _ call: HTTPCall, _ download: ResourceDownload, _ report: Transfer.Report?
    ) async throws(ResourceError) -> ResourceResponse {
        let outcome = await Transfer(
            calls: self, call: call, download: download, control: nil, report: report
        ).run()
        guard let response = outcome.response, outcome.error == nil else {
            throw outcome.error ?? ReplyIntake.noReply
        }
        return response
    }

    /// Sends a request, and asks the user when the server wants an approval. What `approve` throws passes as it
    /// is, unless it is an error of the SDK.
    func send(
        _ request: ResourceRequest, approve: (inout Approval) async throws -> StepAction
    ) async throws -> ResourceResponse {
        try await send(checked(request), approve: approve)
    }

    func send(
        _ call: HTTPCall, approve: (inout Approval) async throws -> StepAction
    ) async throws -> ResourceResponse {
        let signIn = client.signIn
        do {
            let reply = try await client.send(try await settled(call), of: signIn, approve: approve)
            return try await Self.read(reply, call.limits)
        } catch {
            throw ResourceError(error, kind) ?? error
        }
    }

    /// The same, with the reply's content in a file.
    func send(
        _ download: ResourceDownload, progress: (NetworkProgress) -> Void,
        approve: (inout Approval) async throws -> StepAction
    ) async throws -> ResourceResponse {
        let checked = try checked(download)
        let signIn = client.signIn
        do {
            let call = try await settled(checked)
            var received = try ReplyIntake(download, random: random)
            let reply = try await client.send(call, of: signIn, approve: approve)
            received.authorization = reply.authorization
            try received.begin(
                reply.response, length: reply.body.length, isRest: false,
                asksForPart: call.request.headerFields[.range] != nil)
            var reading = reply.body.makeAsyncIterator()
            repeat { progress(received.progress) } while try await received.add(reading.next())
            guard let response = try received.finish() else { throw ReplyIntake.noReply }
            return response
        } catch {
            throw ResourceError(error, kind) ?? error
        }
    }

    private static func read(_ reply: HTTPReply, _ limits: HTTPLimits) async throws -> ResourceResponse {
        ResourceResponse(
            reply.response, data: try await reply.body.collect(upTo: limits.replyBytes), reply.authorization)
    }
}
