import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Foundation

extension SigningDevice {
    /// A request before it is encrypted.
    struct Prepared {
        let plaintext: [UInt8]
        /// The sender's name in the encryption: `did`, or the thumbprint of the device key for `start`.
        let sender: String
        /// Who proves the call; `nil` for `start`, which proves itself.
        let prover: (key: any SigningKey, did: SigningID)?
        /// For `start`: the signed message that the reply answers.
        var start: String?
    }

    /// What a reply is verified with.
    struct Received {
        let trust: IssuerTrust
        let record: ContainerRecord
        let text: String
        let request: SigningHash
    }

    /// The container of which this task holds the lease of a renewal or of a password.
    @TaskLocal static var leased: SigningID?

    /// What nobody else does at the same time, in this process or another one. Who needs the leases of a renewal and of
    /// a password takes the renewal's first.
    func alone<Value>(
        _ id: SigningID, with name: String, _ body: () async throws -> Value
    ) async throws -> Value {
        let deadline = clock.now.addingTimeInterval(120)
        return try await records.store.withExclusiveAccess("signing.\(name)", deadline: deadline) {
            try await Self.$leased.withValue(id) { try await body() }
        }
    }

    /// Does something with a container's keys. Where the server says that the device key was replaced, or a key is gone
    /// here, a renewal may have ended meanwhile: then it is done again with the new ones. A task that holds a lease
    /// leaves that to whoever made it take the lease: it would wait for itself, or for another one that waits for it.
    func withCurrentKeys<Value>(_ id: SigningID, _ body: () async throws -> Value) async throws -> Value {
        let before = try await records.load(id).keyID
        do {
            return try await body()
        } catch let error as SigningError
            where [.keyRetired, .credentialsLost].contains(error.code) && Self.leased != id
        {
            if error.code == .keyRetired { try await finishRenewal(id) }
            // Another task may have ended it, just before, and removed the old keys.
            guard try await records.load(id).keyID != before else { throw error }
            return try await body()
        }
    }

    /// One call with the body of a device that has a `did`.
    func call<Body: MessagePart, Value>(
        _ id: SigningID, _ kind: DeviceCall, _ body: Body, wait: Int = 0, read: (Received) async throws -> Value
    ) async throws -> Value {
        do {
            return try await withCurrentKeys(id) { try await callOnce(id, kind, body, wait: wait, read: read) }
        } catch let error as SigningError where error.code == .enrolmentVoid && kind != .status {
            throw try await waitsForDigits(id) ? SigningError(.notActive) : error
        }
    }

    /// Whether the server has signed that a container of which it refuses a call still waits for the user's digits, or
    /// has got them just now. It refuses one that has ended with the same code.
    private func waitsForDigits(_ id: SigningID) async throws -> Bool {
        let record = try await records.load(id)
        guard record.step == .done, record.state == .unconfirmed else { return false }
        return [.unconfirmed, .active].contains(try await status(of: id).state)
    }

    /// As ``call(_:_:_:wait:read:)``, with the key that there is.
    func callOnce<Body: MessagePart, Value>(
        _ id: SigningID, _ kind: DeviceCall, _ body: Body, wait: Int = 0, read: (Received) async throws -> Value
    ) async throws -> Value {
        try await exchange(
            id, kind, wait: wait,
            prepare: { record, _ in
                guard let did = record.did else { throw SigningError(.internal) }
                let key = try await self.deviceKey(record)
                return Prepared(plaintext: body.encoded(), sender: did.text, prover: (key, did))
            }, read: read)
    }

    /// One call, sent again as often as the app allows while there is no answer: with the same body and a new proof.
    func exchange<Value>(
        _ id: SigningID, _ kind: DeviceCall, wait: Int = 0,
        prepare: (ContainerRecord, String) async throws -> Prepared, read: (Received) async throws -> Value
    ) async throws -> Value {
        try await answered { try await exchangeOnce(id, kind, wait: wait, prepare: prepare, read: read) }
    }

    /// Does something again while there is no answer, as often as the app allows.
    func answered<Value>(_ body: () async throws -> Value) async throws -> Value {
        try await again(min(max(configuration.retries ?? 0, 0), 5), body)
    }

    /// Does something again while there is no answer, at most so many times.
    func again<Value>(_ times: Int, _ body: () async throws -> Value) async throws -> Value {
        var left = times
        while true {
            do {
                return try await body()
            } catch let error as SigningError
                where left > 0 && [SigningError.Code.remote, .unavailable, .busy].contains(error.code)
            {
                left -= 1
            }
        }
    }

    /// One call: with a nonce and an encryption key that count, repeated once if they do not any more. A reply that is
    /// not good counts as none.
    private func exchangeOnce<Value>(
        _ id: SigningID, _ kind: DeviceCall, wait: Int,
        prepare: (ContainerRecord, String) async throws -> Prepared, read: (Received) async throws -> Value
    ) async throws -> Value {
        var isRefreshed = false
        var isRepeated = false
        while true {
            let record = try await records.load(id)
            let trust = try Self.mapped { () throws(SigningProtocolError) in try record.trust() }
            guard let encryption = trust.encryptionKey, let nonce = nonces[record.issuer] else {
                guard !isRefreshed else {
                    throw SigningError(.serverAuthentication, "The server offers no key or no nonce for requests.")
                }
                isRefreshed = true
                try await refresh(id)
                continue
            }
            let prepared = try await prepare(record, nonce)
            let (reply, request) = try await post(prepared, record, kind, encryption, nonce, wait: wait)
            if let problem = reply.problem {
                if problem.code == .useNonce, !isRepeated, reply.nonce != nil {
                    isRepeated = true
                    continue
                }
                if problem.code == .unknownKey, !isRefreshed {
                    isRefreshed = true
                    try await refresh(id)
                    continue
                }
                throw problem
            }
            do {
                return try await read(Received(trust: trust, record: record, text: reply.body, request: request))
            } catch let error as SigningProtocolError where !isRefreshed && Self.asksForNewKeys(error) {
                try await refresh(id)
                let newer = try await records.load(id)
                return try await Self.mappedAsync {
                    try await read(
                        Received(trust: newer.trust(), record: newer, text: reply.body, request: request))
                }
            } catch let error as SigningProtocolError {
                throw SigningError(error)
            }
        }
    }

    /// Whether a newer configuration may have the key, or a certificate of it for this time.
    static func asksForNewKeys(_ error: SigningProtocolError) -> Bool {
        error.code == .unknownKey || error.code == .outsideCertificate
    }

    private func post(
        _ prepared: Prepared, _ record: ContainerRecord, _ kind: DeviceCall, _ encryption: ProtocolKey, _ nonce: String,
        wait: Int
    ) async throws -> (SigningCalls.Reply, SigningHash) {
        let url = record.issuer + kind.path
        let body: String
        do {
            body = try SealedEnvelope.seal(
                prepared.plaintext, to: encryption, content: .request, sender: prepared.sender,
                recipient: record.issuer, random: random)
        } catch {
            throw SigningError(.invalidArgument, "The request is too long.")
        }
        var proof: String?
        if let (key, did) = prepared.prover {
            let content = CallProof(
                issuer: record.issuer, did: did, method: "POST", url: url,
                bodyHash: SigningHash(sha256: Array(body.utf8)), nonce: nonce, jti: SigningID(random: random))
            proof = try await SignedMessage.sign(content, with: key).compact
        }
        guard let answered = proof ?? prepared.start else { throw SigningError(.internal) }
        let reply = try await calls.post(url, body: body, proof: proof, wait: wait)
        if let newer = reply.nonce { nonces[record.issuer] = newer }
        return (reply, .request(answered))
    }

    /// Reads the issuer's configuration again. What follows from it is stored before it is used: a successor of the
    /// pinned identity key, and certificates that do not count any more.
    func refresh(_ id: SigningID) async throws {
        let record = try await records.load(id)
        let (configuration, nonce) = try await calls.configuration(of: record.issuer)
        let trust = try Self.mapped { () throws(SigningProtocolError) in
            try IssuerTrust(
                configuration, issuer: record.issuer, anchor: .pinned(record.identity), minimum: record.minimum)
        }
        try await records.modify(id) { current in
            // Another task or process may have gone further meanwhile: a pin never goes back.
            guard current.identity == record.identity, current.minimum <= trust.minimum else { return }
            current.adopt(trust)
        }
        nonces[record.issuer] = nonce
    }

    /// Opens a reply that is encrypted to the container's transport key, which the caller has before it asks.
    func opened(_ received: Received, with transport: any KeyAgreementKey) async throws -> String {
        guard let did = received.record.did else { throw SigningError(.internal) }
        let envelope = try SealedEnvelope(received.text)
        let plaintext = try await envelope.opened(
            with: transport, content: .reply, sender: received.record.issuer, recipient: did.text)
        guard let text = String(validating: plaintext, as: UTF8.self) else {
            throw SigningProtocolError(.malformed, "The reply is not text.")
        }
        return text
    }

    /// Verifies a reply to this container.
    func verified<Content: ReplyContent>(
        _ text: String, _ received: Received, as type: Content.Type = Content.self
    ) async throws -> SignedMessage<Content> {
        guard let did = received.record.did else { throw SigningError(.internal) }
        let reply = try received.trust.reply(text, as: Content.self, audience: did.text, request: received.request)
        try await note(reply.content.head.issuedAt, received.record)
        return reply
    }

    /// Remembers the latest time that the server signed, in steps of a minute: it is only needed to forget decisions.
    private func note(_ time: Int, _ record: ContainerRecord) async throws {
        guard time > record.serverTime + 60 else { return }
        try await records.modify(record.id) { $0.serverTime = max($0.serverTime, time) }
    }

    static func mapped<Value>(_ body: () throws(SigningProtocolError) -> Value) throws(SigningError) -> Value {
        do {
            return try body()
        } catch {
            throw SigningError(error)
        }
    }

    static func mappedAsync<Value>(_ body: () async throws -> Value) async throws -> Value {
        do {
            return try await body()
        } catch let error as SigningProtocolError {
            throw SigningError(error)
        }
    }
}

extension SigningError.Code {
    static let useNonce = Self(RefusalCode.useNonce)
    static let unknownKey = Self(RefusalCode.unknownKey)
}
