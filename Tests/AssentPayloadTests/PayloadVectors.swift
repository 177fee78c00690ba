import AssentCore
import AssentPayload
import Crypto
import Foundation
import HTTPTypes

/// The published vectors, read from the page itself.
struct PayloadVectors {
    let rows: [String: String]

    static let peer = PayloadPeer(
        role: .device, origin: "https://api.bank.example", client: "i-1", app: "bank", version: "3.2.0",
        platform: "linux")
    static let session = [UInt8](repeating: 0x44, count: 16)

    init() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(contentsOf: root.appending(path: "docs/payload-encryption-vectors.md"), encoding: .utf8)
        var rows: [String: String] = [:]
        for line in page.split(separator: "\n") where line.hasPrefix("| ") && line.hasSuffix("` |") {
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            if cells.count == 2 { rows[cells[0]] = cells[1].trimmingCharacters(in: ["`"]) }
        }
        self.rows = rows
    }

    func bytes(_ name: String) -> [UInt8]? { rows[name].flatMap(Hex.decode) }

    static func key(_ byte: UInt8) throws -> Curve25519.KeyAgreement.PrivateKey {
        try .init(rawRepresentation: [UInt8](repeating: byte, count: 32))
    }

    static func client() throws -> PayloadSecrets {
        try PayloadSecrets(
            peer: peer, ephemeral: key(0x22), serverKey: PayloadKey(of: key(0x11)),
            serverEphemeral: PayloadKey(of: key(0x33)), session: session)
    }

    static func server() throws -> PayloadSecrets {
        try PayloadSecrets(
            peer: peer, staticKey: ServerPayloadKey(key(0x11), notAfter: .distantFuture), ephemeral: key(0x33),
            clientEphemeral: PayloadKey(of: key(0x22)), session: session)
    }

    static let request = HTTPRequest(
        method: .get, scheme: "https", authority: "api.bank.example", path: "/accounts?x=1",
        headerFields: [.accept: "application/json"])
    static let response = HTTPResponse(status: .ok, headerFields: [.contentType: "application/json"])

    static func head(_ kind: FrameHead.Kind, _ number: UInt64, salt: UInt8) -> FrameHead {
        FrameHead(kind, session: session, number: number, random: Repeating(byte: salt))
    }
}

/// A salt that is known.
struct Repeating: RandomSource {
    let byte: UInt8
    func bytes(_ count: Int) -> [UInt8] { [UInt8](repeating: byte, count: count) }
}

extension PayloadSecrets {
    func sealed(_ head: FrameHead, _ plaintext: [UInt8], bound: [UInt8] = []) throws -> [UInt8] {
        var sealer = FrameSealer(head, key: head.kind == .request ? request : reply, bound: bound)
        return try sealer.seal(plaintext) + sealer.finish()
    }

    /// What a whole frame holds, as a receiver that expects `kind` reads it.
    func opened(_ frame: [UInt8], as kind: FrameHead.Kind, bound: [UInt8] = []) throws -> [UInt8] {
        let head = try FrameHead(frame.prefix(FrameHead.length))
        guard head.kind == kind, head.session == session else { throw PayloadError.foreignFrame }
        var opener = FrameOpener(head, key: kind == .request ? request : reply, bound: bound)
        let plaintext = try opener.open(frame.dropFirst(FrameHead.length))
        try opener.finish()
        return plaintext
    }
}
