import AssentAuthorization
import AssentCore
import AssentTokens
import HTTPTypes

/// Sends one call and takes its reply, in several sendings if it is suspended in between.
struct Transfer: Sendable {
    struct Outcome: Sendable {
        let response: ResourceResponse?
        let error: ResourceError?
    }

    /// Is told each change of how far a call is.
    typealias Report = @Sendable (@Sendable (inout NetworkProgress) -> Void) -> Void

    let calls: ResourceCalls
    let call: HTTPCall
    let download: ResourceDownload?
    /// Suspends the call; `nil` where nobody can.
    let control: CallControl?
    /// `nil` where nobody asks how far it is.
    let report: Report?

    /// Never throws: what has come when a connection ends is told with the error.
    func run() async -> Outcome {
        var received: ReplyIntake?
        // A user who signs in while it is suspended has not asked for the rest.
        let signIn = calls.client.signIn
        do {
            let limit = (download?.request.limits ?? (download == nil ? call.limits : ResourceCalls.limits)).replyBytes
            var current = try ReplyIntake(download, upTo: limit, random: calls.random)
            received = current
            var next = counting(call)
            while true {
                let suspensions = control?.suspensions
                do {
                    try await whenRunning()
                    try await exchange(next, of: signIn, &current)
                    return Outcome(response: try current.finish(), error: nil)
                } catch let error as HTTPTransportError where error.code == .connectionClosed {
                    received = current
                    guard let control, let suspensions, control.suspensions > suspensions else { throw error }
                    try await control.whenRunning()
                    next = try again(current, error)
                }
            }
        } catch {
            let error = ResourceError(error, calls.kind) ?? .unforeseen(error, calls.kind)
            return Outcome(response: error.code == .connectionLost ? received?.known : nil, error: error)
        }
    }

    private func exchange(
        _ call: HTTPCall, of signIn: SignInMark?, _ received: inout ReplyIntake
    ) async throws {
        let reply = try await calls.client.send(try await calls.settled(call), of: signIn)
        received.authorization = reply.authorization
        let asksForPart = self.call.request.headerFields[.range] != nil
        try received.begin(
            reply.response, length: reply.body.length,
            isRest: !asksForPart && call.request.headerFields[.range] != nil, asksForPart: asksForPart)
        tell(received, isHead: true)
        if let whole = reply.body.inMemory {
            try await whenRunning()
            guard !whole.isEmpty, try received.add(whole) else { return }
            tell(received, isHead: false)
            return try await whenRunning()
        }
        var reading = reply.body.makeAsyncIterator()
        while true {
            try await whenRunning()
            guard try await received.add(reading.next()) else { return }
            tell(received, isHead: false)
        }
    }

    /// Waits while the call is suspended.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    private func whenRunning() async throws {
        guard let control else { return try Task.checkCancellation() }
        try await control.whenRunning()
    }

    private func again(_ received: ReplyIntake, _ error: HTTPTransportError) throws -> HTTPCall {
        let head = received.head
        let isContinuable = head?.isContinuable == true && call.request.headerFields[.range] == nil
        let resumption = Resumption(
            connection: .ended, isRepeatable: call.mayBeRepeated, hasStored: received.hasStored,
            isContinuable: isContinuable)
        switch resumption.action {
        case .startOver: return counting(call)
        case .askForRest:
            guard let tag = head?.strongETag else { throw error }
            return call.forRest(after: received.count, tag: tag)
        case .goOn, .fail: throw error
        }
    }

    // MARK: - Progress

    private func tell(_ received: ReplyIntake, isHead: Bool) {
        guard let report else { return }
        let (count, total) = (received.count, received.total)
        let sent = isHead ? call.body?.inMemory?.count : nil
        report { progress in
            if let sent { progress.sentBytes = sent }
            progress.receivedBytes = count
            progress.bytesToReceive = total
        }
    }

    /// The same call, which tells what is sent of its content. Bytes in memory are sent at once.
    private func counting(_ call: HTTPCall) -> HTTPCall {
        guard let report, let body = call.body else { return call }
        let length = body.length
        report { $0.bytesToSend = length }
        guard body.inMemory == nil else { return call }
        var counted = call
        counted.body = HTTPBody(length: body.length, isReplayable: body.isReplayable) {
            let next = body.reading()
            report { $0.sentBytes = 0 }
            return {
                let chunk = try await next()
                if let count = chunk?.count { report { $0.sentBytes += count } }
                return chunk
            }
        }
        return counted
    }
}
