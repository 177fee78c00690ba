import AssentCore
import AssentJOSE
import AssentSigningProtocol
import Crypto
import Foundation
import Testing

/// The published vectors, read from the page itself: `docs/transaction-signing-vectors.md`.
struct Vectors: Sendable {
    /// Private scalars by the key's name.
    let scalars: [String: [UInt8]]
    /// Thumbprints by the key's name.
    let thumbprints: [String: String]
    /// Named bytes (hexadecimal) and texts, as they stand there.
    let values: [String: String]
    /// Messages and the name of the key that signed each, in order.
    let messages: [(name: String, signer: String, compact: String)]
    /// What every reader refuses.
    let negatives: [(name: String, compact: String)]

    static let page: Result<Vectors, any Error> = Result { try Vectors() }

    static func load() throws -> Vectors { try page.get() }

    private init() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let text = try String(
            contentsOf: root.appending(path: "docs/transaction-signing-vectors.md"), encoding: .utf8)
        var section = ""
        var scalars: [String: [UInt8]] = [:]
        var thumbprints: [String: String] = [:]
        var values: [String: String] = [:]
        var messages: [(String, String, String)] = []
        var negatives: [(String, String)] = []
        var name = ""
        var signer = ""
        var block: [Substring]?
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if var lines = block {
                if line == "```" {
                    switch section {
                    case "Values": values[name] = lines.joined()
                    case "Signed messages": messages.append((name, signer, lines.joined()))
                    case "Negative examples": negatives.append((name, lines.joined()))
                    default: break
                    }
                    block = nil
                } else {
                    lines.append(line)
                    block = lines
                }
            } else if line.hasPrefix("## ") {
                section = String(line.dropFirst(3))
            } else if line.hasPrefix("### ") {
                name = String(line.dropFirst(4))
            } else if line.hasPrefix("Signed by the key *") {
                signer = line.split(separator: "*").dropFirst().first.map(String.init) ?? ""
            } else if line == "```text" {
                block = []
            } else if section == "Keys", line.hasPrefix("| "), line.contains("`") {
                let cells = line.split(separator: "|").map { $0.filter { $0 != " " && $0 != "`" } }
                guard let scalar = cells.dropFirst().first.flatMap({ Hex.decode($0) }), cells.count == 3 else {
                    continue
                }
                scalars[cells[0]] = scalar
                thumbprints[cells[0]] = cells[2]
            } else if line.hasPrefix("- ") {
                if let colon = line.range(of: ": `", options: .backwards), section == "Values" {
                    values[String(line[line.index(line.startIndex, offsetBy: 2)..<colon.lowerBound])] =
                        String(line[colon.upperBound...].dropLast())
                } else {
                    name = String(line.dropFirst(2).dropLast())
                }
            }
        }
        self.scalars = scalars
        self.thumbprints = thumbprints
        self.values = values
        self.messages = messages.map { (name: $0.0, signer: $0.1, compact: $0.2) }
        self.negatives = negatives.map { (name: $0.0, compact: $0.1) }
    }

    func bytes(_ name: String) throws -> [UInt8] {
        let value = try #require(values[name])
        return try #require(Hex.decode(value))
    }

    func text(_ name: String) throws -> String {
        let value = try #require(values[name])
        try #require(value.hasPrefix("\"") && value.hasSuffix("\""))
        return String(value.dropFirst().dropLast())
    }

    func compact(_ name: String) throws -> String {
        try #require(messages.first { $0.name == name }?.compact)
    }

    func signingKey(_ name: String) throws -> SoftwareSigningKey {
        let key = try P256.Signing.PrivateKey(rawRepresentation: #require(scalars[name]))
        return try SoftwareSigningKey(algorithm: .es256, privateKey: Secret(bytes: key.derRepresentation))
    }

    func agreementKey(_ name: String) throws -> SoftwareAgreementKey {
        let key = try P256.KeyAgreement.PrivateKey(rawRepresentation: #require(scalars[name]))
        return try SoftwareAgreementKey(privateKey: Secret(bytes: key.derRepresentation))
    }

    func publicKey(_ name: String) throws -> ProtocolKey { try ProtocolKey(signingKey(name)) }

    /// A message, verified.
    func message<Content: SignedContent>(
        _ name: String, as type: Content.Type = Content.self
    ) throws -> SignedMessage<Content> {
        let message = try #require(messages.first { $0.name == name })
        return try SignedMessage(message.compact, key: publicKey(message.signer))
    }

    var issuer: String { "https://am.bank.example/am/signing/realms/root/realms/alpha" }
    var sub: String { "7d1f3c52-5a0e-4b57-9d0e-0c7f3c1f9a11" }
}

/// How a message of the vectors is read: the one place that knows which type belongs to which name.
struct MessageReading: Sendable, CustomTestStringConvertible {
    let name: String
    let type: MessageType
    /// Verifies with the key, and gives the content as this module writes it.
    let read: @Sendable (String, ProtocolKey) throws -> [UInt8]

    var testDescription: String { name }

    private static func of<Content: SignedContent>(_ type: Content.Type, _ name: String) -> MessageReading {
        MessageReading(name: name, type: Content.type) { compact, key in
            try SignedMessage<Content>(compact, key: key).content.encoded()
        }
    }

    static let all: [MessageReading] = [
        of(KeyCertificate.self, "cert"), of(KeyCertificate.self, "cert.encryption"), of(NextIdentity.self, "next"),
        of(PreviousIdentity.self, "previous"), of(Invite.self, "invite"), of(Start.self, "start"),
        of(Offer.self, "offer"), of(Evaluation.self, "eval.enrol"), of(NonceReply.self, "nonce"),
        of(KeyPossession.self, "pop"), of(Enrolment.self, "enrol"), of(Enrolled.self, "enrolled"),
        of(ContainerStatus.self, "status"), of(EnrolmentRecord.self, "record"), of(Ticket.self, "tds"),
        of(Ticket.self, "tds.claim"), of(TransactionDocument.self, "txd"), of(TransactionList.self, "list"),
        of(Fetched.self, "fetched"), of(Evaluation.self, "eval.unlock"), of(EvaluationConfirmation.self, "confirm"),
        of(Decision.self, "decision"), of(Possession.self, "possession"), of(Decision.self, "decision.blind"),
        of(Receipt.self, "receipt"), of(PasswordChange.self, "change"), of(PasswordChange.self, "change.commit"),
        of(Endorsement.self, "endorse"), of(LoginAssertion.self, "login"), of(LoginAssertion.self, "login.implicit"),
        of(CallProof.self, "proof.evaluate"), of(CallProof.self, "proof.commit"), of(CallProof.self, "proof.complete"),
        of(CallProof.self, "proof.confirm"), of(CallProof.self, "proof.list"), of(CallProof.self, "proof.fetch"),
        of(CallProof.self, "proof.unlock"), of(CallProof.self, "proof.confirm slot"),
        of(CallProof.self, "proof.decide"),
    ]
}

/// A compact text with its parts decoded, to be tampered with.
struct CompactParts {
    var parts: [[UInt8]]

    init(_ text: String) throws {
        parts = try text.split(separator: ".", omittingEmptySubsequences: false).map {
            try #require(Base64URL.decode($0))
        }
    }

    var text: String { parts.map { Base64URL.encode($0) }.joined(separator: ".") }

    func object(_ part: Int) throws -> JSONObject { try #require(JSONValue.parse(parts[part]).object) }
}

/// Signs any header and payload.
func signRaw(header: [UInt8], payload: [UInt8], with key: SoftwareSigningKey) async throws -> String {
    let input = Base64URL.encode(header) + "." + Base64URL.encode(payload)
    return input + "." + Base64URL.encode(try await key.signature(for: Array(input.utf8)))
}
