import AssentCore
import AssentPayload
import Crypto
import Foundation
import TestSupport
import Testing

/// `Tests/Payload/pe1.py`, made from the page alone, as a second opinion.
@Suite("Payload encryption against the implementation in Python", .enabled(if: PythonPeer.mustRun))
struct PythonPayloadTests {
    @Test("It opens our frames of every length, and refuses them damaged, as we do")
    func frames() throws {
        let secrets = try PayloadVectors.client()
        let bound = PayloadVectors.head(.request, 3, salt: 1).binding
        var asked: [JSONValue] = []
        var expected: [JSONValue] = []
        for count in [0, 1, 255, 65_536, 65_537, 200_000] {
            let plaintext = SystemRandom().bytes(count)
            let frame = try secrets.sealed(
                FrameHead(.reply, session: secrets.session, number: 3, random: SystemRandom()), plaintext, bound: bound)
            var damaged = frame
            damaged[frame.count / 2] ^= 1
            for frame in [frame, damaged] {
                asked.append([
                    "kind": 2, "key": .string(secrets.reply.withUnsafeBytes { Hex.encode($0) }),
                    "session": .string(Hex.encode(secrets.session)), "bound": .string(Hex.encode(bound)),
                    "frame": .string(Hex.encode(frame)),
                ])
            }
            expected += [["number": 3, "plain": .string(Hex.encode(plaintext))], nil]
        }
        for (answer, expected) in zip(try answers("open", asked), expected) {
            if expected == nil { #expect(answer["refused"] != nil) } else { #expect(answer == expected) }
        }
    }

    private func answers(_ command: String, _ asked: [JSONValue]) throws -> [JSONValue] {
        let input = asked.flatMap { $0.serializedBytes() + [UInt8(ascii: "\n")] }
        let lines = try PythonPeer.run(script: "Payload/pe1.py", [command], input: input).split(separator: "\n")
        try #require(lines.count == asked.count)
        return try lines.map { try JSONValue.parse(Array($0.utf8)) }
    }

    /// What both sides say of the keys that they agreed on.
    private func told(_ secrets: PayloadSecrets) -> [String: JSONValue] {
        [
            "session": .string(Hex.encode(secrets.session)),
            "request": .string(secrets.request.withUnsafeBytes { Hex.encode($0) }),
            "reply": .string(secrets.reply.withUnsafeBytes { Hex.encode($0) }),
        ]
    }

    private struct Case {
        let peer: PayloadPeer
        let key = SystemRandom().bytes(32)
        let session = SystemRandom().bytes(16)

        static let all = [
            PayloadVectors.peer,
            PayloadPeer(
                role: .app, origin: "https://api.bank.example:8443", client: nil, app: "bank \"1\" \\/",
                version: "3.2.0 (45)", platform: "ios"),
        ].map(Case.init)

        /// The peer in the words of the script.
        var members: [JSONObject.Member] {
            JSONObject(omittingNil: [
                "key": .string(Hex.encode(key)), "origin": .string(peer.origin), "role": .string(peer.role.rawValue),
                "app": .string(peer.app), "version": .string(peer.version), "platform": .string(peer.platform),
                "client": peer.client.map { .string($0) },
            ]).members
        }

        func asked(_ more: JSONObject.Member...) -> JSONValue { .object(JSONObject(members + more)) }
    }

    @Test("It is a client of our server: both agree on the same keys")
    func pythonAsks() throws {
        let key = try PayloadVectors.key(0x11)
        let keys = [ServerPayloadKey(key, notAfter: .distantFuture)]
        let known = JSONObject.Member(name: "static", value: .string(Hex.encode(PayloadKey(of: key).bytes)))
        let asked = try answers("ask", Case.all.map { $0.asked(known) })
        var finishing: [JSONValue] = []
        var expected: [[String: JSONValue]] = []
        for (made, each) in zip(asked, Case.all) {
            let body = try #require(made["body"]?.string)
            let request = try HandshakeRequest(body: Array(body.utf8))
            #expect(made["pe"] == .string(request.claim))
            #expect(request.peer(at: each.peer.origin) == each.peer)
            let (reply, secrets) = try ServerHandshake(request, keys: keys, now: .now).finish(
                prover: each.peer.client, origin: each.peer.origin, session: each.session, random: SystemRandom())
            finishing.append(each.asked(known, .init(name: "answer", value: .string(Hex.encode(reply.body)))))
            expected.append(told(secrets))
        }
        for (answer, expected) in zip(try answers("finish", finishing), expected) {
            for (name, value) in expected { #expect(answer[name] == value, "\(name)") }
        }
    }

    @Test("It is a server for our client: both agree on the same keys")
    func pythonAnswers() throws {
        let key = [UInt8](repeating: 0x11, count: 32)
        let serverKey = try PayloadKey(of: PayloadVectors.key(0x11))
        let clients = try Case.all.map { try ClientHandshake($0.peer, serverKey: serverKey, random: SystemRandom()) }
        let asked = zip(clients, Case.all).map { client, each in
            Self.question(client.request.body, key: each.key, session: each.session, static: key, each.peer.origin)
        }
        for (answer, client) in zip(try answers("answer", asked), clients) {
            let secrets = try client.finish(Array(#require(answer["answer"]?.string).utf8)).secrets
            for (name, value) in told(secrets) { #expect(answer[name] == value, "\(name)") }
        }
    }

    private static func question(
        _ body: [UInt8], key: [UInt8], session: [UInt8], static staticKey: [UInt8], _ origin: String
    ) -> JSONValue {
        [
            "body": .string(Hex.encode(body)), "static": [.string(Hex.encode(staticKey))],
            "key": .string(Hex.encode(key)), "session": .string(Hex.encode(session)), "origin": .string(origin),
        ]
    }

    @Test("It refuses the handshakes that we refuse")
    func badHandshakes() throws {
        let bad = try HandshakeTests.badRequests()
        let asked = bad.map { each in
            Self.question(
                each.body, key: [UInt8](repeating: 0x33, count: 32), session: PayloadVectors.session,
                static: [UInt8](repeating: 0x11, count: 32), "https://api.bank.example")
        }
        for (answer, each) in zip(try answers("answer", asked), bad) {
            #expect(answer["refused"] != nil, "\(each.name)")
        }
        let replies = try HandshakeTests.badReplies()
        let serverKey = try PayloadKey(of: PayloadVectors.key(0x11))
        let finishing = replies.map { each -> JSONValue in
            [
                "key": .string(String(repeating: "22", count: 32)), "static": .string(Hex.encode(serverKey.bytes)),
                "origin": "https://api.bank.example", "role": "device", "app": "bank", "version": "3.2.0",
                "platform": "linux", "client": "i-1", "answer": .string(Hex.encode(each.body)),
            ]
        }
        for (answer, each) in zip(try answers("finish", finishing), replies) {
            #expect(answer["refused"] != nil, "\(each.name)")
        }
    }
}
