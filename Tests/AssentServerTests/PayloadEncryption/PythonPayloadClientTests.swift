import AssentCore
import AssentJOSE
import AssentTesting
import Foundation
import TestSupport
import Testing

@testable import AssentEngine
@testable import AssentServer

/// A client of payload encryption in Python, made from docs/payload-encryption.md alone: `Tests/Payload/pe1.py call`.
@Suite("Payload encryption: a client in Python, over TLS", .enabled(if: PythonPeer.mustRun))
struct PythonPayloadClientTests {
    /// A call that the client makes, and what is wrong with it.
    private struct Asked {
        var method = "GET"
        var path = "/open"
        var fields: [(String, String)] = []
        var data: String?
        var fault: String?
        /// What is wrong with the handshake before it.
        var handshake: String?
        /// The installation that makes the handshake before it.
        var device: JSONValue?
        /// Which of two nodes the call goes to.
        var node: Int64?
        /// Where the byte is that is flipped.
        var at: Int64?

        var json: JSONValue {
            .object(
                JSONObject(omittingNil: [
                    "method": .string(method), "path": .string(path),
                    "fields": .array(fields.map { [.string($0.0), .string($0.1)] }),
                    "data": data.map { .string($0) }, "fault": fault.map { .string($0) },
                    "handshake": handshake.map { .string($0) }, "device": device,
                    "node": node.map { .integer($0) }, "at": at.map { .integer($0) },
                ]))
        }
    }

    private func answers(
        _ calls: [Asked], at url: String, key: String, _ fixture: ServerFixture
    ) async throws -> [JSONValue] {
        let authority = try #require(fixture.endpoints.authorityFile)
        let place = ["--url", fixture.published(url + "/").trimmed, "--cafile", authority]
        return try await answers(calls, key: key, place)
    }

    /// The same, where the options say where the server is.
    private func answers(_ calls: [Asked], key: String, _ options: [String]) async throws -> [JSONValue] {
        let input = Array(calls.map { $0.json.serialized() + "\n" }.joined().utf8)
        // A key may begin with a hyphen.
        let arguments = ["call", "--key=\(key)"] + options
        let told = try await offPool {
            try PythonPeer.run(script: "Payload/pe1.py", arguments, input: input)
        }
        let answers = try told.split(separator: "\n").map { try JSONValue.parse(Array($0.utf8)) }
        #expect(answers.count == calls.count)
        return answers
    }

    private func content(_ answer: JSONValue) throws -> JSONValue {
        try JSONValue.parse(try #require(Base64URL.decode(answer["content"]?.string ?? "")))
    }

    /// Python compares the certificate with a clock of its own.
    private func run(_ body: (ServerFixture, String) async throws -> Void) async throws {
        try await runWithDoor { door, key in try await body(door.fixture, key) }
    }

    private func runWithDoor(_ body: (RegistrationDoor, String) async throws -> Void) async throws {
        let clock = ManualClock(Date())
        try await ServerFixture.run(clock: clock, editing: { RegistrationDoor.file($0) }) { fixture in
            // A session must be younger than the memory of spent calls, whose age the database's clock tells.
            clock.advance(by: max(0, Date().timeIntervalSince(clock.now)) + 2)
            let door = try await RegistrationDoor(fixture)
            let made = try await door.act("addPayloadKey", ["days": 365])
            try await body(door, try #require(made.json["x"]?.string))
        }
    }

    @Test("It calls server and gateway sealed, each in one session, with small content and with content of many chunks")
    func calls() async throws {
        try await run { fixture, key in
            fixture.upstream.answer { request, peer in
                peer.answer(fields: ["Content-Type: text/plain"], "\(request.line) \(request.body.count)")
            }
            let sent = [0, 1, 65_536, 200_000].map { count in
                Asked(method: "POST", path: "/open?x=1", data: String(repeating: "a", count: count))
            }
            let replies = try await answers(sent + [Asked()], at: fixture.gateway(""), key: key, fixture)
            for (reply, asked) in zip(replies, sent + [Asked()]) {
                #expect(reply["sealed"] == true && reply["status"] == 200 && reply["padded"] == true)
                #expect(reply["session"] == 1)
                let text = Base64URL.decode(reply["content"]?.string ?? "").map { String(decoding: $0, as: UTF8.self) }
                #expect(text == "\(asked.method) \(asked.path) HTTP/1.1 \(asked.data?.utf8.count ?? 0)")
            }
            let discovery = Asked(path: "/am/oauth2/realms/root/realms/alpha/.well-known/openid-configuration")
            let known = try #require(
                try await answers([discovery], at: fixture.root(""), key: key, fixture).first)
            #expect(known["sealed"] == true && known["status"] == 200)
            #expect(try content(known)["issuer"]?.string?.hasSuffix("/realms/alpha") == true)
        }
    }

    @Test("36: Each of its faults is refused as the page says, and nothing comes to the upstream; the session lives on")
    func faults() async throws {
        let refused: [(fault: String, isSealed: Bool, status: Int64, error: String?)] = [
            ("headless", false, 400, "pe_malformed"), ("reply", false, 400, "pe_malformed"),
            ("zero", false, 400, "pe_malformed"), ("flipped", false, 400, "pe_malformed"),
            ("long", false, 400, "pe_malformed"), ("short", false, 400, "pe_malformed"),
            ("unknown", false, 404, "pe_unknown_session"), ("authority", true, 421, nil), ("inner", true, 400, nil),
            ("connection", true, 400, nil), ("upper", true, 400, nil), ("host", true, 421, nil),
            ("userinfo", true, 400, nil), ("scheme", true, 400, nil), ("trailers", true, 400, nil),
            ("cut", true, 400, nil), ("behind", false, 400, "pe_malformed"), ("unended", false, 400, "pe_malformed"),
            ("twice", false, 400, "pe_malformed"), ("skipped", false, 400, "pe_malformed"),
            ("swapped", false, 400, "pe_malformed"), ("repeated", false, 400, "pe_malformed"),
            ("between", false, 400, "pe_malformed"), ("kind", false, 400, "pe_malformed"), ("port", true, 421, nil),
            ("beyond", false, 400, "pe_malformed"), ("overrun", false, 400, "pe_malformed"),
        ]
        try await run { fixture, key in
            let calls =
                refused.map { Asked(fault: $0.fault) }
                + [Asked(fault: "padding"), Asked(fault: "again"), Asked(fault: "wide"), Asked()]
                + [Asked(fault: "last"), Asked()]
            let replies = try await answers(calls, at: fixture.gateway(""), key: key, fixture)
            for (reply, expected) in zip(replies, refused) {
                #expect(reply["sealed"] == .bool(expected.isSealed), "\(expected.fault)")
                #expect(reply["status"] == .integer(expected.status), "\(expected.fault)")
                #expect(reply["error"]?.string == expected.error, "\(expected.fault)")
            }
            let rest = Array(replies.dropFirst(refused.count))
            // Behind the highest number each other one is too old to be told from one that was.
            #expect(rest.map { $0["status"] } == [400, 409, 200, 200, 200, 409])
            #expect(rest.map { $0["sealed"] }.suffix(5) == [false, true, true, true, false])
            #expect(rest.last?["error"]?.string == "pe_repeated")
            #expect(replies.allSatisfy { $0["session"] == 1 })
            // The one that was sent twice, and the three without a fault.
            #expect(fixture.upstream.requests.map(\.line) == Array(repeating: "GET /open HTTP/1.1", count: 4))
        }
    }

    @Test("36: With any one byte of a message changed it is refused, and the upstream gets the last one, as it was")
    func everyByte() async throws {
        try await run { fixture, key in
            let (length, session) = (318, 1...16)
            let calls = (0..<length).map { Asked(fault: "flipped", at: Int64($0)) } + [Asked()]
            let replies = try await answers(calls, at: fixture.gateway(""), key: key, fixture)
            try #require(replies.count == length + 1)
            for (place, reply) in replies.dropLast().enumerated() {
                let isUnknown = session.contains(place)
                #expect(reply["sealed"] == false, "\(place): \(reply)")
                #expect(reply["error"]?.string == (isUnknown ? "pe_unknown_session" : "pe_malformed"), "\(place)")
            }
            #expect(replies.last?["sealed"] == true && replies.last?["status"] == 200)
            #expect(replies.allSatisfy { $0["session"] == 1 })
            #expect(fixture.upstream.requests.count == 1)
        }
    }

    @Test("36: Each fault of its handshakes is refused as the page says, and the next one is a good one")
    func badHandshakes() async throws {
        try await run { fixture, key in
            let malformed = [
                "twice", "more", "missing", "huge", "version", "role", "client", "short", "long", "zero", "weak",
            ]
            let calls = (malformed + ["device"]).map { Asked(handshake: $0) } + [Asked()]
            let replies = try await answers(calls, at: fixture.gateway(""), key: key, fixture)
            for (reply, fault) in zip(replies, malformed) {
                #expect(reply["refused"]?.string == "handshake: 400 pe_malformed", "\(fault)")
            }
            #expect(replies.dropLast().last?["refused"]?.string == "handshake: 401 pe_bad_proof")
            #expect(replies.last?["status"] == 200 && replies.last?["session"] == 1)
            #expect(fixture.upstream.requests.count == 1)
        }
    }

    @Test("36: Each fault of an installation's proof at the handshake is refused, and a right one is its session's")
    func badProofs() async throws {
        try await runWithDoor { door, key in
            let fixture = door.fixture
            let instance = try await door.instance()
            let device: JSONValue = [
                "client": .string(instance.id), "app": "pay",
                "key": .string(Base64URL.encode(instance.key.key.privateKey.revealBytes())),
                "now": .integer(Int64(fixture.clock.now.timeIntervalSince1970)),
            ]
            let faults = ["otherkey", "method", "url", "body", "unclaimed", "signature", "two", "spent"]
            let calls = faults.map { Asked(handshake: $0, device: device) } + [Asked(device: device)]
            let replies = try await answers(calls, at: fixture.gateway(""), key: key, fixture)
            for (reply, fault) in zip(replies, faults) {
                #expect(reply["refused"]?.string == "handshake: 401 pe_bad_proof", "\(fault): \(reply)")
            }
            #expect(replies.last?["sealed"] == true && replies.last?["status"] == 200, "\(replies)")
            #expect(fixture.upstream.requests.count == 1)

            #expect(try await door.act("endRegistration", ["clientId": .string(instance.id)]).status == 200)
            let late = try await answers([Asked(device: device)], at: fixture.gateway(""), key: key, fixture)
            #expect(late.first?["refused"]?.string == "handshake: 401 pe_bad_proof", "removed: \(late)")
            #expect(fixture.upstream.requests.count == 1)
        }
    }

    #if PostgreSQL && os(Linux)
    @Test("36: A message that one node has accepted is refused as a copy at the other, where a fresh one is accepted")
    func copied() async throws {
        // Python compares the certificates with a clock of its own.
        try await TwoNodes.run(startingAt: Date()) { nodes in
            let key = try await SealedClient.key(nodes.first)
            let options = [
                "--origin", try #require(nodes.first.endpoints.gateway),
                "--url", nodes.first.gateway(""), "--cafile", try #require(nodes.first.endpoints.authorityFile),
                "--other", nodes.second.gateway(""),
                "--other-cafile", try #require(nodes.second.endpoints.authorityFile),
            ]
            var calls: [Asked] = []
            for node: Int64 in [0, 1] {
                calls.append(Asked(method: "POST", data: "copied", fault: "copied", node: node))
                calls.append(Asked(method: "POST", data: "fresh", node: 1 - node))
            }
            let replies = try await answers(calls, key: key.publicKey, options)
            try #require(replies.count == 4)
            for (copied, fresh) in [(replies[0], replies[1]), (replies[2], replies[3])] {
                #expect(copied["first"]?["sealed"] == true && copied["first"]?["status"] == 201, "\(copied)")
                #expect(copied["sealed"] == false && copied["status"] == 409, "\(copied)")
                #expect(copied["error"]?.string == "pe_repeated", "\(copied)")
                #expect(fresh["sealed"] == true && fresh["status"] == 201, "\(fresh)")
            }
            #expect(replies.allSatisfy { $0["session"] == 1 })
            // Of each pair, what was copied came to the one node, and the fresh one to the other.
            func bodies(_ node: ServerFixture) -> [String] {
                node.upstream.requests.map { String(decoding: $0.body, as: UTF8.self) }
            }
            #expect(bodies(nodes.first) == ["copied", "fresh"])
            #expect(bodies(nodes.second) == ["fresh", "copied"])
        }
    }
    #endif

    @Test("36: A key that the server does not have, or not any more, gets no session, and the server's own does")
    func keys() async throws {
        try await runWithDoor { door, key in
            let fixture = door.fixture
            let stranger = Base64URL.encode([UInt8](repeating: 9, count: 32))
            let reply = try await answers([Asked()], at: fixture.gateway(""), key: stranger, fixture)
            #expect(reply.first?["refused"]?.string == "handshake: 400 pe_unknown_key")
            let made = try await door.act("addPayloadKey", ["days": 1])
            let short = try #require(made.json["x"]?.string)
            for one in [key, short] {
                let good = try await answers([Asked()], at: fixture.gateway(""), key: one, fixture)
                #expect(good.first?["status"] == 200)
            }
            fixture.clock.advance(by: 86_400)
            for (one, status) in [(key, 200), (short, nil)] as [(String, Int64?)] {
                let late = try await answers([Asked()], at: fixture.gateway(""), key: one, fixture)
                #expect(late.first?["status"]?.integer == status)
                let refused: String? = status == nil ? "handshake: 400 pe_unknown_key" : nil
                #expect(late.first?["refused"]?.string == refused)
            }
        }
    }
}

extension String {
    /// An origin, without the path that ``ServerFixture/published(_:)`` needs.
    fileprivate var trimmed: String { String(dropLast()) }
}
