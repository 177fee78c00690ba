import AssentCore
import AssentPayload
import Crypto
import Foundation
import TestSupport
import Testing

@Suite("Payload encryption: the handshake")
struct HandshakeTests {
    private static let now = Date(timeIntervalSince1970: 1_900_000_000)
    private let peer = PayloadVectors.peer
    private let keys: [ServerPayloadKey]

    init() throws {
        keys = try [
            ServerPayloadKey(PayloadVectors.key(0x11), notAfter: Self.now.addingTimeInterval(60)),
            ServerPayloadKey(PayloadVectors.key(0x12), notAfter: Self.now),
        ]
    }

    private func client(_ key: UInt8 = 0x11, as peer: PayloadPeer? = nil) throws -> ClientHandshake {
        try ClientHandshake(
            peer ?? self.peer, serverKey: PayloadKey(of: PayloadVectors.key(key)), random: Repeating(byte: 0x22))
    }

    private func answer(
        _ body: [UInt8], prover: String? = "i-1", origin: String = "https://api.bank.example"
    ) throws -> (reply: HandshakeReply, secrets: PayloadSecrets) {
        try ServerHandshake(HandshakeRequest(body: body), keys: keys, now: Self.now).finish(
            prover: prover, origin: origin, session: PayloadVectors.session, random: Repeating(byte: 0x33))
    }

    @Test("Both bodies and the proof's claim are those of the page, and both sides get the page's keys")
    func vectors() throws {
        let vectors = try PayloadVectors()
        let client = try client()
        #expect(String(decoding: client.request.body, as: UTF8.self) == vectors.rows["handshake"])
        #expect(client.request.claim == vectors.rows["pe"])
        let (reply, server) = try answer(client.request.body)
        #expect(String(decoding: reply.body, as: UTF8.self) == vectors.rows["handshake's answer"])
        let (secrets, expires) = try client.finish(reply.body)
        #expect(expires == 43_200)
        for side in [server, secrets] {
            #expect(side.request.withUnsafeBytes { Array($0) } == vectors.bytes("request"))
            #expect(side.reply.withUnsafeBytes { Array($0) } == vectors.bytes("reply"))
        }
        let app = PayloadPeer(
            role: .app, origin: peer.origin, client: nil, app: "bank", version: "3.2.0", platform: "linux")
        let asked = try self.client(as: app).request
        #expect(String(decoding: asked.body, as: UTF8.self) == vectors.rows["handshake of an app"])
        #expect(try HandshakeRequest(body: asked.body).peer(at: peer.origin) == app)
    }

    @Test("A key that the server does not have, or not any more, is refused by name")
    func unknownKeys() throws {
        for key: UInt8 in [0x12, 0x13] {
            let body = try client(key).request.body
            #expect(throws: PayloadRefusal.unknownKey) { try answer(body) }
        }
    }

    @Test("A device without the proof of its own key is refused, and so is an app with somebody's proof")
    func proofs() throws {
        let body = try client().request.body
        for prover in [nil, "i-2", ""] as [String?] {
            #expect(throws: PayloadRefusal.badProof) { try answer(body, prover: prover) }
        }
        let app = PayloadPeer(
            role: .app, origin: peer.origin, client: nil, app: "bank", version: "3.2.0", platform: "linux")
        let asked = try client(as: app)
        #expect(throws: PayloadRefusal.badProof) { try answer(asked.request.body) }
        let reply = try answer(asked.request.body, prover: nil).reply
        #expect(throws: Never.self) { try asked.finish(reply.body) }
    }

    @Test("A client's key that agrees on nothing is refused")
    func smallOrder() throws {
        for first: UInt8 in [0, 1] {
            let weak = try PayloadKey([first] + [UInt8](repeating: 0, count: 31))
            let body = try HandshakeRequest(peer, kid: keys[0].kid, ephemeral: weak).body
            #expect(throws: PayloadRefusal.malformed) { try answer(body) }
        }
    }

    @Test("Each member of a request may be missing, doubled or of another type in vain, and none may be added")
    func requests() throws {
        for (name, body) in try Self.badRequests() {
            #expect(throws: PayloadError.self, "\(name)") { try HandshakeRequest(body: body) }
        }
    }

    @Test("Each member of a reply may be missing, doubled or of another type in vain, and none may be added")
    func replies() throws {
        for (name, body) in try Self.badReplies() {
            #expect(throws: PayloadError.self, "\(name)") { try client().finish(body) }
        }
    }

    @Test("A reply with any other value is not confirmed: another listener, session, key or text was agreed on")
    func confirmation() throws {
        let client = try client()
        let reply = try answer(client.request.body).reply
        let text = String(decoding: reply.body, as: UTF8.self)
        for (value, other) in [
            (reply.session, SystemRandom().bytes(16)), (reply.confirmation, SystemRandom().bytes(32)),
            (reply.ephemeral.bytes, try PayloadKey(of: PayloadVectors.key(0x34)).bytes),
        ] {
            let changed = text.replacing(Base64URL.encode(value), with: Base64URL.encode(other))
            #expect(throws: PayloadError.notConfirmed) { try client.finish(Array(changed.utf8)) }
        }
        let elsewhere = try answer(client.request.body, origin: "https://gateway.bank.example").reply
        #expect(throws: PayloadError.notConfirmed) { try client.finish(elsewhere.body) }
        // Who ends TLS says that the app is another one.
        let asked = String(decoding: client.request.body, as: UTF8.self).replacing("3.2.0", with: "3.1.0")
        let changed = try answer(Array(asked.utf8)).reply
        #expect(throws: PayloadError.notConfirmed) { try client.finish(changed.body) }
        // Who does not have the static key.
        let forged = try ServerHandshake(
            HandshakeRequest(body: self.client(0x13).request.body),
            keys: [ServerPayloadKey(PayloadVectors.key(0x13), notAfter: .distantFuture)], now: Self.now
        ).finish(prover: "i-1", origin: peer.origin, session: PayloadVectors.session, random: SystemRandom())
        #expect(throws: PayloadError.notConfirmed) { try client.finish(forged.reply.body) }
        #expect(throws: PayloadError.badKey) {
            let zero = Base64URL.encode([UInt8](repeating: 0, count: 32))
            _ = try client.finish(
                Array(text.replacing(Base64URL.encode(reply.ephemeral.bytes), with: zero).utf8))
        }
    }

    @Test("Each bit of a request and of its reply counts: with one changed, nothing is agreed on")
    func flipped() throws {
        let client = try client()
        let reply = try answer(client.request.body).reply.body
        // JSON may say the same in other bytes, but no single bit does.
        for index in client.request.body.indices {
            var changed = client.request.body
            changed[index] ^= 1
            #expect(throws: (any Error).self, "byte \(index)") { try client.finish(answer(changed).reply.body) }
        }
        // But for the lifetime, which is in no key: it can only be made shorter.
        for index in reply.indices.dropLast(6) {
            var changed = reply
            changed[index] ^= 1
            #expect(throws: (any Error).self, "byte \(index)") { try client.finish(changed) }
        }
    }

    @Test("A client does not say what cannot be said: no client id for a device, one for an app, texts without end")
    func unsayable() throws {
        let long = String(repeating: "a", count: 129)
        for peer in [
            PayloadPeer(role: .device, origin: "", client: nil, app: "a", version: "1", platform: "linux"),
            PayloadPeer(role: .app, origin: "", client: "i", app: "a", version: "1", platform: "linux"),
            PayloadPeer(role: .device, origin: "", client: long, app: "a", version: "1", platform: "linux"),
            PayloadPeer(role: .app, origin: "", client: nil, app: "", version: "1", platform: "linux"),
            PayloadPeer(role: .app, origin: "", client: nil, app: "ä", version: "1", platform: "linux"),
            PayloadPeer(role: .app, origin: "", client: nil, app: "a", version: "1\n", platform: "linux"),
        ] {
            #expect(throws: PayloadError.self) { try client(as: peer) }
        }
    }

    @Test("A refusal is read back from its own status and JSON alone")
    func refusals() {
        for refusal in PayloadRefusal.allCases {
            let body = refusal.body.serializedBytes()
            #expect(PayloadRefusal(status: refusal.status, body: body) == refusal)
            #expect(PayloadRefusal(status: 200, body: body) == nil)
        }
        for body in ["", "{}", "[]", #"{"error":1}"#, #"{"error":"pe_other"}"#, "<html>pe_busy</html>"] {
            #expect(PayloadRefusal(status: 503, body: Array(body.utf8)) == nil)
        }
        let huge = #"{"error":"pe_busy","x":"\#(String(repeating: "a", count: 4096))"}"#
        #expect(PayloadRefusal(status: 503, body: Array(huge.utf8)) == nil)
    }

    @Test("The name of a session is one that the nodes have made, not a guess")
    func names() {
        let names = SessionName(key: SymmetricKey(data: [UInt8](repeating: 1, count: 32)))
        let name = names.make(random: SystemRandom())
        #expect(name.count == 16)
        #expect(names.isOurs(name))
        #expect(!SessionName(key: SymmetricKey(size: .bits256)).isOurs(name))
        for index in name.indices {
            var other = name
            other[index] ^= 1
            #expect(!names.isOurs(other))
        }
        #expect(!names.isOurs([]) && !names.isOurs(name + [0]))
    }
}

extension HandshakeTests {
    /// Bodies that are not requests, with what is wrong about each.
    static func badRequests() throws -> [(name: String, body: [UInt8])] {
        let good = try HandshakeRequest(
            PayloadVectors.peer, kid: PayloadKey(of: PayloadVectors.key(0x11)).kid,
            ephemeral: PayloadKey(of: PayloadVectors.key(0x22)))
        let object = try #require(try JSONValue.parse(good.body).object)
        let short = JSONValue.string(Base64URL.encode([UInt8](repeating: 9, count: 31)))
        let long = JSONValue.string(Base64URL.encode([UInt8](repeating: 9, count: 33)))
        let padded = JSONValue.string(Base64URL.encode(good.ephemeral.bytes) + "=")
        let bits = JSONValue.string(String(repeating: "A", count: 42) + "B")
        let standard = JSONValue.string(String(repeating: "+", count: 42) + "A")
        let text = JSONValue.string(String(repeating: "a", count: 129))
        let fraction = try JSONValue.parse("3.2")
        return bad(
            object,
            [
                ("v", [0, 2, "1", true]), ("kid", [short, long, padded, bits, standard, "", 1]),
                ("e", [short, long, padded, bits, standard, "", 1]), ("role", ["", "App", "server", 1]),
                ("app", ["", text, "\u{0}", "ä", 1]), ("version", ["", text, "\n", fraction]),
                ("platform", ["", text, "\u{7F}", []]), ("client", ["", text, "ä", 1]),
            ])
            + [
                ("an app with a client", changed(object, "role", "app")),
                ("huge", good.body + [UInt8](repeating: UInt8(ascii: " "), count: 4096)),
            ]
    }

    /// Bodies that are not replies.
    static func badReplies() throws -> [(name: String, body: [UInt8])] {
        let reply = HandshakeReply(try PayloadVectors.server(), ephemeral: try PayloadKey(of: PayloadVectors.key(0x33)))
        let object = try #require(try JSONValue.parse(reply.body).object)
        let fraction = try JSONValue.parse("43200.0")
        let text = { (count: Int) in JSONValue.string(Base64URL.encode([UInt8](repeating: 9, count: count))) }
        return bad(
            object,
            [
                ("v", [0, 2, "1"]), ("session", [text(15), text(17), "", 1]), ("e", [text(31), text(33), "", 1]),
                ("confirm", [text(31), text(33), text(32), "", 1]),
                ("expires", [0, -1, 43_201, "43200", fraction, .integer(Int64.max)]),
            ]) + [("huge", reply.body + [UInt8](repeating: UInt8(ascii: " "), count: 4096))]
    }

    private static func bad(
        _ object: JSONObject, _ values: [(name: String, values: [JSONValue])]
    ) -> [(name: String, body: [UInt8])] {
        let more = JSONValue.object(JSONObject(object.members + [.init(name: "x", value: 1)]))
        var bodies: [(name: String, body: [UInt8])] = [
            ("nothing", []), ("an array", Array("[]".utf8)), ("no JSON", Array("{".utf8)), ("not UTF-8", [0xFF, 0xFE]),
            ("an unknown member", more.serializedBytes()),
            ("bytes behind it", JSONValue.object(object).serializedBytes() + Array("{}".utf8)),
        ]
        for member in object.members {
            let left = object.members.filter { $0.name != member.name }
            bodies.append(("without \(member.name)", JSONValue.object(JSONObject(left)).serializedBytes()))
            let twice = JSONObject(object.members + [member])
            bodies.append(("\(member.name) twice", JSONValue.object(twice).serializedBytes()))
            for value: JSONValue in [.null, [], [:], .bool(false)] {
                bodies.append(("\(member.name) of another type", changed(object, member.name, value)))
            }
        }
        for (name, values) in values {
            for value in values { bodies.append(("\(name) \(value)", changed(object, name, value))) }
        }
        return bodies
    }

    private static func changed(_ object: JSONObject, _ name: String, _ value: JSONValue) -> [UInt8] {
        JSONValue.object(
            JSONObject(object.members.map { $0.name == name ? .init(name: name, value: value) : $0 })
        ).serializedBytes()
    }
}
