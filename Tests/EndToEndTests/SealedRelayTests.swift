import AssentCore
import AssentPayload
import AssentServer
import Foundation
import HTTPTypes
import Testing

@testable import Assent
@testable import AssentDemo

/// The SDK's transport and the real gateway, over TLS that somebody between them ends, who changes each field of each
/// message both ways.
@Suite("Payload encryption: a relay that ends TLS, with each field of each message changed")
struct SealedRelayTests {
    private static let handshake = RelayScene.handshake
    private static let message = RelayScene.message

    // MARK: Messages

    /// What is done to one message.
    struct Change: Sendable {
        let name: String
        /// Whether the server executes the call all the same.
        let isExecuted: Bool
        /// Whether the client gets its reply all the same.
        var isAnswered = false
        /// Whether it has the beginning of a reply, so that it does not send again what is safe.
        var isHandedOver = false
        let meddle: TLSEnder.Meddler
    }

    /// What is done to the bytes of a frame.
    private struct Damage: Sendable {
        let name: String
        /// Whether the first chunk opens all the same: then a reply is handed over, and ends with an error.
        let isBehind: Bool
        let change: @Sendable ([UInt8]) -> [UInt8]

        init(_ name: String, isBehind: Bool = false, _ change: @escaping @Sendable ([UInt8]) -> [UInt8]) {
            (self.name, self.isBehind, self.change) = (name, isBehind, change)
        }

        init(_ name: String, at index: Int, _ bits: UInt8) {
            self.init(name) { SealedRelayTests.flipped($0, at: index, bits) }
        }
    }

    /// Each field of a frame, changed; the frame cut, made longer, and with its parts in another order.
    private static let frames = [
        Damage("kind", at: 0, 3), Damage("session", at: 1, 1), Damage("end of session", at: 16, 0x80),
        Damage("number", at: 24, 1), Damage("top of number", at: 17, 0x80), Damage("salt", at: 25, 1),
        Damage("end of salt", at: 40, 1), Damage("last", at: 41, 1), Damage("length", at: 45, 1),
        Damage("top of length", at: 42, 1), Damage("content", at: 46, 1), Damage("middle of content", at: 150, 0x10),
        Damage("tag") { SealedRelayTests.flipped($0, at: $0.count - 1, 1) }, Damage("nothing") { _ in [] },
        Damage("one byte") { Array($0.prefix(1)) }, Damage("half a head") { Array($0.prefix(20)) },
        Damage("a head") { Array($0.prefix(41)) }, Damage("no content") { Array($0.prefix(46)) },
        Damage("without a byte") { Array($0.dropLast()) }, Damage("without its head") { Array($0.dropFirst(41)) },
        Damage("one byte more", isBehind: true) { $0 + [0] }, Damage("twice in one", isBehind: true) { $0 + $0 },
        Damage("chunk twice", isBehind: true) { $0 + Array($0.dropFirst(41)) },
        Damage("halves swapped") { Array($0.suffix($0.count / 2)) + Array($0.dropLast($0.count / 2)) },
    ]

    private static func flipped(_ bytes: [UInt8], at index: Int, _ bits: UInt8) -> [UInt8] {
        var bytes = bytes
        if bytes.indices.contains(index) { bytes[index] ^= bits }
        return bytes
    }

    /// Each field of requests and replies.
    static var fields: [Change] {
        frames.flatMap { damage -> [Change] in
            [
                Change(name: "request: \(damage.name)", isExecuted: false) { asked, pass in
                    var asked = asked
                    asked.body = damage.change(asked.body)
                    return try await pass(asked)
                },
                Change(name: "reply: \(damage.name)", isExecuted: true, isHandedOver: damage.isBehind) { asked, pass in
                    var told = try await pass(asked)
                    told.body = damage.change(told.body)
                    return told
                },
            ]
        }
    }

    /// What is not of bytes: other answers, with the server and in place of it.
    private static var answers: [Change] {
        let plain = [200, 302, 401, 403, 404, 503].map { (name: "plain \($0)", told: TLSEnder.Told.json($0, [:])) }
        let refused = PayloadRefusal.allCases.map { refusal in
            (name: refusal.rawValue, told: TLSEnder.Told.json(refusal.status, refusal.body))
        }
        return (plain + refused).flatMap { name, told -> [Change] in
            [
                Change(name: "in its place: \(name)", isExecuted: false) { _, _ in told },
                Change(name: "behind it: \(name)", isExecuted: true) { asked, pass in
                    _ = try await pass(asked)
                    return told
                },
            ]
        }
    }

    /// Messages at other places than their own; `old` is an earlier exchange of the same session.
    private static func places(_ old: @escaping @Sendable () -> (TLSEnder.Asked, TLSEnder.Told)?) -> [Change] {
        [
            Change(name: "sent twice", isExecuted: true, isAnswered: true) { asked, pass in
                let told = try await pass(asked)
                _ = try await pass(asked)
                return told
            },
            Change(name: "sent twice, with the second reply", isExecuted: true) { asked, pass in
                _ = try await pass(asked)
                return try await pass(asked)
            },
            Change(name: "an older request in its place", isExecuted: false) { asked, pass in
                try await pass(old()?.0 ?? asked)
            },
            Change(name: "the reply to an older request", isExecuted: true) { asked, pass in
                let told = try await pass(asked)
                return old()?.1 ?? told
            },
            Change(name: "the request as its reply", isExecuted: true) { asked, pass in
                var told = try await pass(asked)
                told.body = asked.body
                return told
            },
            Change(name: "as a handshake", isExecuted: false) { asked, pass in
                var asked = asked
                asked.head.path = handshake
                return try await pass(asked)
            },
            Change(name: "of another type", isExecuted: false) { asked, pass in
                var asked = asked
                asked.head.headerFields[.contentType] = "text/plain"
                return try await pass(asked)
            },
            Change(name: "with a reply of another type", isExecuted: true) { asked, pass in
                var told = try await pass(asked)
                told.head.headerFields[.contentType] = "text/plain"
                return told
            },
            Change(name: "with a reply of another status", isExecuted: true) { asked, pass in
                var told = try await pass(asked)
                told.head.status = .created
                return told
            },
        ]
    }

    @Test("36: Whatever it does to a message, no changed call runs, no unsafe one twice, and the app is told so")
    func messages() async throws {
        try await RelayScene.run { scene in
            // The controls: it passes on as it should, and what is not sealed it changes at will.
            let client = try scene.client()
            for method in [HTTPRequest.Method.post, .get] {
                let before = scene.ledger.entries.count
                #expect(await scene.call(client, method) == .answered)
                #expect(scene.runs(method, since: before) == 1)
            }
            try await changedPlainly(scene)

            let older = Locked<(TLSEnder.Asked, TLSEnder.Told)?>(nil)
            let changes = Self.fields + Self.answers + Self.places { older.withLock { $0 } }
            for change in changes {
                let client = try scene.client()
                #expect(await scene.call(client, .get) == .answered)
                older.withLock { $0 = scene.ender.passed.last.map { ($0.asked, $0.told) } }
                for method in [HTTPRequest.Method.post, .get] {
                    let before = scene.ledger.entries.count
                    scene.ender.meddle(RelayScene.next(Self.message, change.meddle))
                    let outcome = await scene.call(client, method)
                    // What is safe is sent once more.
                    let isRepeated = method == .get && !change.isAnswered && !change.isHandedOver
                    let isAnswered = change.isAnswered || isRepeated
                    let executions = (change.isExecuted ? 1 : 0) + (isRepeated ? 1 : 0)
                    #expect(outcome == (isAnswered ? .answered : .unknown), "\(change.name), \(method)")
                    #expect(scene.runs(method, since: before) == executions, "\(change.name), \(method)")
                }
            }
            #expect(changes.count > 75)
            try await sentAgain(scene)
        }
    }

    /// Without payload encryption the relay gets what it wants.
    private func changedPlainly(_ scene: RelayScene) async throws {
        scene.ender.meddle { asked, pass in
            var asked = asked
            asked.head.path = "/open/pay?to=mallory"
            asked.body = Array("amount=900.00".utf8)
            return try await pass(asked)
        }
        let call = try HTTPCall(.post, url: scene.ender.url + RelayScene.target, body: HTTPBody(RelayScene.content))
        #expect(try await scene.ender.pinned.send(call).status == 200)
        let paid = try #require(scene.ledger.entries.last)
        #expect(paid.target == "/open/pay?to=mallory" && paid.body == Array("amount=900.00".utf8))
        scene.ender.clear()
    }

    /// All that has passed, once more: nothing that is unsafe runs. What is safe may, where a session is read again.
    private func sentAgain(_ scene: RelayScene) async throws {
        let before = scene.ledger.entries.count
        let messages = scene.ender.passed.map(\.asked).filter { $0.head.path == Self.message }
        #expect(messages.count > 150)
        for message in messages { _ = try await scene.ender.send(message) }
        #expect(!scene.ledger.entries.dropFirst(before).contains { $0.method == "POST" })
    }

    // MARK: Handshakes

    private static func json(
        _ body: [UInt8], _ change: (inout JSONObject) -> Void
    ) throws -> [UInt8] {
        var object = try JSONValue.parse(body).object ?? JSONObject()
        change(&object)
        return JSONValue.object(object).serializedBytes()
    }

    /// What is done to a handshake.
    private struct Deed: Sendable {
        let name: String
        let meddle: TLSEnder.Meddler

        init(_ name: String, _ meddle: @escaping TLSEnder.Meddler) { (self.name, self.meddle) = (name, meddle) }

        /// A member of the request's JSON, or of the reply's, that is another one or missing.
        static func member(_ name: String, _ value: JSONValue?, ofReply: Bool) -> Deed {
            let text = value.map { "\($0)" } ?? "missing"
            return Deed("\(name) of the \(ofReply ? "reply" : "request"): \(text)") { asked, pass in
                var asked = asked
                if !ofReply { asked.body = try SealedRelayTests.json(asked.body) { $0[name] = value } }
                var told = try await pass(asked)
                if ofReply { told.body = try SealedRelayTests.json(told.body) { $0[name] = value } }
                return told
            }
        }
    }

    /// Each member of the JSON both ways, changed.
    private static func members(_ keys: [PayloadKey]) -> [Deed] {
        let other = Base64URL.encode([UInt8](repeating: 9, count: 32))
        let zero = Base64URL.encode([UInt8](repeating: 0, count: 32))
        let requests: [(String, JSONValue)] = [
            ("v", 2), ("kid", .string(keys[1].kid)), ("e", .string(other)), ("e", .string(zero)), ("role", "device"),
            ("app", "other"), ("version", "2.0"), ("platform", "ios"), ("client", "i-1"), ("more", 1),
        ]
        let replies: [(String, JSONValue)] = [
            ("v", 2), ("session", .string(Base64URL.encode([UInt8](repeating: 7, count: 16)))), ("e", .string(other)),
            ("e", .string(zero)), ("confirm", .string(other)), ("expires", 0), ("expires", 43_201), ("more", 1),
        ]
        let changed =
            requests.map { Deed.member($0.0, $0.1, ofReply: false) }
            + replies.map { Deed.member($0.0, $0.1, ofReply: true) }
        let missing =
            ["v", "kid", "e", "role", "app", "version", "platform"].map { Deed.member($0, nil, ofReply: false) }
            + ["v", "session", "e", "confirm", "expires"].map { Deed.member($0, nil, ofReply: true) }
        return changed + missing
    }

    /// What is done to a handshake, so that nothing of the call is sent; `old` is the reply to another one.
    private static func deeds(_ keys: [PayloadKey], _ old: TLSEnder.Told) -> [Deed] {
        let cut = [
            Deed("half of the request") { asked, pass in
                var asked = asked
                asked.body = Array(asked.body.prefix(asked.body.count / 2))
                return try await pass(asked)
            },
            Deed("the request twice in one") { asked, pass in
                var asked = asked
                asked.body += asked.body
                return try await pass(asked)
            },
            Deed("half of the reply") { asked, pass in
                var told = try await pass(asked)
                told.body = Array(told.body.prefix(told.body.count / 2))
                return told
            },
            Deed("the reply to another handshake") { asked, pass in
                _ = try await pass(asked)
                return old
            },
        ]
        let plain = [200, 302, 401, 403, 404, 500].map { status in
            Deed("plain \(status)") { _, _ in .json(status, [:]) }
        }
        // An unknown key leads to the next one, and a server that is busy is asked again.
        let refused = PayloadRefusal.allCases.filter { $0 != .unknownKey && $0 != .busy }.map { refusal in
            Deed(refusal.rawValue) { _, _ in .json(refusal.status, refusal.body) }
        }
        return members(keys) + cut + plain + refused
    }

    @Test("36: Whatever it does to a handshake, nothing of the call leaves before the server's key has confirmed")
    func handshakes() async throws {
        try await RelayScene.run { scene in
            let first = try scene.client()
            #expect(await scene.call(first, .post) == .answered)
            let agreed = scene.ender.passed.first { $0.asked.head.path == Self.handshake }
            let old = try #require(agreed).told
            for deed in Self.deeds(scene.keys, old) {
                let name = deed.name
                scene.ender.clear()
                let before = scene.ledger.entries.count
                scene.ender.meddle(RelayScene.next(Self.handshake, deed.meddle))
                let client = try scene.client()
                #expect(await scene.call(client, .post) == .notSent, "\(name)")
                #expect(scene.ender.arrived.map(\.head.path) == [Self.handshake], "\(name)")
                #expect(scene.ledger.entries.count == before)
                // The next call of the same client makes another handshake.
                #expect(await scene.call(client, .post) == .answered, "\(name)")
                #expect(scene.runs(.post, since: before) == 1)
            }
        }
    }

    @Test("36: A handshake that is only sent twice, made shorter, or told of an unknown key ends in one execution")
    func harmless() async throws {
        let unknown = PayloadRefusal.unknownKey
        let harmless: [(name: String, handshakes: Int, meddle: TLSEnder.Meddler)] = [
            (
                "sent twice, with the second reply", 1,
                { asked, pass in
                    _ = try await pass(asked)
                    return try await pass(asked)
                }
            ),
            (
                "a shorter life", 1,
                { asked, pass in
                    var told = try await pass(asked)
                    told.body = try Self.json(told.body) { $0["expires"] = 60 }
                    return told
                }
            ),
            ("an unknown key", 2, { _, _ in .json(unknown.status, unknown.body) }),
        ]
        try await RelayScene.run { scene in
            for (name, handshakes, meddle) in harmless {
                scene.ender.clear()
                let before = scene.ledger.entries.count
                scene.ender.meddle(RelayScene.next(Self.handshake, meddle))
                let client = try scene.client()
                #expect(await scene.call(client, .post) == .answered, "\(name)")
                #expect(scene.runs(.post, since: before) == 1, "\(name)")
                #expect(scene.ender.arrived.count { $0.head.path == Self.handshake } == handshakes, "\(name)")
            }
        }
    }
}
