import AssentCore
import AssentSigningProtocol
import Foundation
import HTTPTypes

/// Makes calls: encrypts and proves them, and does after a failure what ``CallRetry`` says.
struct CallRunner: Sendable {
    let parts: DeviceParts

    private struct Refused: Error {
        let problem: SigningError
        let hasNonce: Bool
    }

    private struct Unprepared: Error {}

    /// A call on its way.
    private struct Attempt {
        let request: Request
        var record: ContainerRecord
        let prover: Prover
        var retry: CallRetry
        var next = CallRetry.Next.send
        /// The newest reply.
        var earlier: Received?
        /// What the server said to another call, where this one asks for the status that explains it.
        var refusal: (error: any Error, asked: ContainerRecord)?
    }

    /// Makes one call. If `read` throws `SigningProtocolError`, the call goes on as if no reply had come.
    ///
    /// - Throws: ``SigningError``, and what the store and the key provider throw.
    func ask<Value>(
        _ request: Request, of record: ContainerRecord, by prover: Prover = .current,
        read: (Received) async throws -> Value
    ) async throws -> Value {
        var attempt = Attempt(
            request: request, record: record, prover: prover, retry: CallRetry(sends: sends(request.call)))
        while true {
            do {
                if attempt.next == .refreshAndSend || attempt.next == .refreshAndRead {
                    let call = try parts.http.configurationCall(of: record.issuer)
                    let reply = try await parts.http.read(parts.http.transport.send(call))
                    attempt.record = try await adopt(SigningHTTP.configuration(in: reply), attempt.record)
                }
                let received: Received
                if attempt.next == .refreshAndRead, let earlier = attempt.earlier {
                    received = Received(
                        trust: try SigningError.mapped(try attempt.record.trust()),
                        record: attempt.record, text: earlier.text, request: earlier.request)
                } else {
                    let prepared = try await prepared(attempt)
                    let reply = try await parts.http.read(parts.http.transport.send(prepared.call))
                    received = try await self.received(reply, prepared, attempt.record)
                }
                attempt.earlier = received
                guard let refusal = attempt.refusal else { return try await read(received) }
                throw try await explained(refusal.error, by: status(received), of: refusal.asked)
            } catch {
                let error = SigningHTTP.said(error)
                attempt.next = attempt.retry.next(after: Self.failure(error))
                switch (attempt.next, attempt.prover) {
                case (.takeNewKeys, .current):
                    attempt.record = try await newer(attempt.record, after: Self.said(error))
                case (.fail, _), (.signAgain, _), (.takeNewKeys, _):
                    attempt = try await asking(why: Self.said(error), attempt)
                case (.send, _), (.refreshAndSend, _), (.refreshAndRead, _): break
                }
            }
        }
    }

    /// The server refuses a container whose digits are not typed yet with the code of one that has ended. Its signed
    /// status tells which it is: where the digits are missing, or were typed just now, the user has to do something
    /// else.
    ///
    /// - Returns: the call that asks for the status.
    /// - Throws: `error`, when it needs no explanation.
    private func asking(why error: any Error, _ attempt: Attempt) async throws -> Attempt {
        guard attempt.request.call != .status, (error as? SigningError)?.code == .enrolmentVoid else { throw error }
        let now = try await parts.records.load(attempt.record.id)
        guard now.phase.isConfirmed, now.state == .unconfirmed else { throw error }
        return Attempt(
            request: .status, record: now, prover: .current, retry: CallRetry(sends: sends(.status)),
            refusal: (error, now))
    }

    private func explained(
        _ refusal: any Error, by status: ContainerStatus, of record: ContainerRecord
    ) async throws -> any Error {
        try await parts.containers.adopt(status, of: record)
        return [.unconfirmed, .active].contains(status.state) ? SigningError(.notActive) : refusal
    }

    /// What came back, if it is to be verified.
    private func received(
        _ reply: SigningHTTP.Reply, _ prepared: Prepared, _ record: ContainerRecord
    ) async throws -> Received {
        if let nonce = reply.nonce { await parts.memory.keep(nonce: nonce, of: record.issuer) }
        if let problem = reply.problem { throw Refused(problem: problem, hasNonce: reply.nonce != nil) }
        return Received(trust: prepared.trust, record: record, text: reply.body, request: prepared.hash)
    }

    /// Reads a reply `status` of this container.
    func status(_ received: Received) async throws -> ContainerStatus {
        let status = try await verified(received, as: ContainerStatus.self).content
        guard status.did == received.record.did else {
            throw SigningProtocolError(.wrongAudience, "The status is that of another container.", member: "did")
        }
        return status
    }

    /// Verifies a reply to this container, and remembers the latest time that the server signed, in steps of a minute:
    /// it is only needed to forget decisions, and for the age of keys and passwords.
    func verified<Content: ReplyContent>(
        _ received: Received, as type: Content.Type
    ) async throws -> SignedMessage<Content> {
        let record = received.record
        let reply = try received.trust.reply(
            received.text, as: Content.self, audience: record.knownDid.text, request: received.request)
        let time = reply.content.head.issuedAt
        if time > record.serverTime + 60 {
            try await parts.records.modify(record.id) { $0.serverTime = max($0.serverTime, time) }
        }
        return reply
    }

    // MARK: Repetitions

    /// Goes on with an operation that holds keys of `record` which may not count any more: takes the new ones.
    ///
    /// - Throws: `error` when there are none, or for another failure.
    func recover(
        _ record: inout ContainerRecord, _ retry: inout CallRetry, from error: any Error
    ) async throws {
        guard retry.next(after: Self.failure(error)) == .takeNewKeys else { throw error }
        record = try await newer(record, after: error)
    }

    /// The container with the keys that have taken the place of those of `record`. Where the server says that it has
    /// replaced them, the renewal is ended first; another task, too, may have ended one just before, and removed the
    /// old keys.
    private func newer(_ record: ContainerRecord, after error: any Error) async throws -> ContainerRecord {
        if Self.failure(error) == .keyRetired { _ = try await parts.renewals.finish(record.id) }
        let now = try await parts.records.load(record.id)
        guard now.keyID != record.keyID else { throw error }
        return now
    }

    /// How often the same is sent again while there is no answer: what the app says, or once where a lost answer would
    /// cost the user a try of a password or make a second record.
    func sends(_ call: DeviceCall) -> Int {
        let isCostly = [DeviceCall.unlock, .confirmEvaluation, .create].contains(call)
        return min(max(parts.configuration.retries ?? (isCostly ? 1 : 0), 0), 5)
    }

    /// What an error means for a repetition.
    static func failure(_ error: any Error) -> CallRetry.Failure {
        switch error {
        case is Unprepared: .unprepared
        case let refused as Refused where refused.problem.code == .useNonce && !refused.hasNonce: .refused
        case let refused as Refused: failure(refused.problem)
        case let error as SigningProtocolError where asksForNewKeys(error): .uncertified
        case let error as SigningError where error.code == .remote: .noAnswer
        case let error as SigningError where error.code == .credentialsLost: .keyGone
        case let error as SigningError: CallRetry.Failure(error.code)
        default: .refused
        }
    }

    /// Whether a newer configuration may have the key, or a certificate of it for this time.
    static func asksForNewKeys(_ error: SigningProtocolError) -> Bool {
        error.code == .unknownKey || error.code == .outsideCertificate
    }

    /// An error as the app hears it.
    private static func said(_ error: any Error) -> any Error {
        switch error {
        case is Unprepared:
            SigningError(.serverAuthentication, "The server offers no key or no nonce for requests.")
        case let refused as Refused: refused.problem
        case let error as SigningProtocolError: SigningError(error)
        default: error
        }
    }

    // MARK: Requests

    /// A request as it is sent, with the hash that its reply has to have.
    private typealias Prepared = (call: HTTPCall, hash: SigningHash, trust: IssuerTrust)

    /// Encrypts and proves a request.
    private func prepared(_ attempt: Attempt) async throws -> Prepared {
        let (request, record) = (attempt.request, attempt.record)
        let trust = try SigningError.mapped(try record.trust())
        guard let encryption = trust.encryptionKey, let nonce = await parts.memory.nonce(of: record.issuer) else {
            throw Unprepared()
        }
        let url = record.issuer + request.call.path
        var fields: HTTPFields = [.contentType: "application/jose"]
        let (body, answered): (String, String)
        switch request.body {
        case .start(let message):
            answered = try await message.signed(record, nonce)
            body = try seal(
                StartBody(start: answered).encoded(), to: encryption, from: message.jwk.thumbprint.text, record)
        case .content(let content):
            let did = try record.knownDid
            let key = if case .new(let key) = attempt.prover { key } else { try await parts.provider.device(record) }
            body = try seal(content, to: encryption, from: did.text, record)
            let proof = CallProof(
                issuer: record.issuer, did: did, method: "POST", url: url,
                bodyHash: SigningHash(sha256: Array(body.utf8)), nonce: nonce, jti: SigningID(random: parts.random))
            answered = try await SignedMessage.sign(proof, with: key).compact
            fields[.signingProof] = answered
        }
        var limits = parts.http.limits
        limits.read += .seconds(request.wait)
        limits.total = limits.total.map { $0 + .seconds(request.wait) }
        let call = try HTTPCall(.post, url: url, headerFields: fields, body: HTTPBody(body), limits: limits)
        return (call, .request(answered), trust)
    }

    private func seal(
        _ content: [UInt8], to key: ProtocolKey, from sender: String, _ record: ContainerRecord
    ) throws(SigningError) -> String {
        do {
            return try SealedEnvelope.seal(
                content, to: key, content: .request, sender: sender, recipient: record.issuer, random: parts.random)
        } catch {
            throw SigningError(.invalidArgument, "The request is too long.")
        }
    }

    /// Reads the issuer's configuration again.
    func refresh(_ record: ContainerRecord, sends: Int = 0) async throws -> ContainerRecord {
        try await adopt(configuration(of: record.issuer, sends: sends), record)
    }

    /// Takes over a configuration that was read again. What follows from it is stored before it is used: a successor of
    /// the pinned identity key, and certificates that are no longer valid.
    private func adopt(
        _ answer: (configuration: IssuerConfiguration, nonce: String?), _ record: ContainerRecord
    ) async throws -> ContainerRecord {
        let trust = try SigningError.mapped(
            try IssuerTrust(
                answer.configuration, issuer: record.issuer, anchor: .pinned(record.identity), minimum: record.minimum))
        let newer = try await parts.records.modify(record.id) { current in
            // Another task or process may have gone further meanwhile: a pin never goes back.
            guard current.identity == record.identity, current.minimum <= trust.minimum else { return }
            current.adopt(trust)
        }
        await parts.memory.keep(nonce: answer.nonce, of: record.issuer)
        return newer
    }

    /// Reads an issuer's configuration, and tries again up to `sends` times while there is no answer.
    func configuration(
        of issuer: String, sends: Int
    ) async throws -> (configuration: IssuerConfiguration, nonce: String?) {
        var retry = CallRetry(sends: sends)
        while true {
            do {
                let call = try parts.http.configurationCall(of: issuer)
                return try await SigningHTTP.configuration(in: parts.http.read(parts.http.transport.send(call)))
            } catch {
                let error = SigningHTTP.said(error)
                guard retry.next(after: Self.failure(error)) == .send else { throw error }
            }
        }
    }
}
