import AssentCore
import AssentSigningProtocol

/// A request of a device before it is encrypted.
struct Request: Sendable {
    /// What is encrypted.
    enum Body: Sendable {
        /// The members of the call; the device key proves it.
        case content([UInt8])
        /// A message that proves itself and has the nonce in it.
        case start(StartMessage)
    }

    let call: DeviceCall
    let body: Body
    /// Seconds for which the server may wait.
    var wait = 0

    init(_ call: DeviceCall, _ content: some MessagePart, wait: Int = 0) {
        self.call = call
        body = .content(content.encoded())
        self.wait = wait
    }

    static let status = Request(.status, EmptyBody())

    init(_ message: StartMessage) {
        call = .start
        body = .start(message)
    }
}

/// What the first message of an enrolment says besides the nonce.
struct StartMessage: Sendable {
    let key: any SigningKey
    let jwk: ProtocolKey
    let modes: [ProtectionMode]
    let info: [String: String]

    func signed(_ record: ContainerRecord, _ nonce: String) async throws -> String {
        try await SignedMessage.sign(
            Start(issuer: record.issuer, code: record.code, nonce: nonce, jwk: jwk, modes: modes, info: info), with: key
        ).compact
    }
}

/// Whose key proves a call, and what is done where that key does not count any more.
enum Prover: Sendable {
    /// The container's device key; the call itself takes the new one and goes on.
    case current
    /// The container's device key; the caller has other keys of the container in hand, or a lease that the end of a
    /// renewal needs, and sees to it.
    case given
    /// A new device key, which may be the container's.
    case new(any SigningKey)
}

/// A reply, and what it is verified with.
struct Received: Sendable {
    let trust: IssuerTrust
    let record: ContainerRecord
    let text: String
    /// The hash of the request that it has to answer.
    let request: SigningHash

    /// Opens a reply that is encrypted to the container's transport key, which the caller has before it asks.
    func opened(with transport: any KeyAgreementKey) async throws -> Received {
        let envelope = try SealedEnvelope(text)
        let plaintext = try await envelope.opened(
            with: transport, content: .reply, sender: record.issuer, recipient: record.knownDid.text)
        guard let text = String(validating: plaintext, as: UTF8.self) else {
            throw SigningProtocolError(.malformed, "The reply is not text.")
        }
        return Received(trust: trust, record: record, text: text, request: request)
    }
}
