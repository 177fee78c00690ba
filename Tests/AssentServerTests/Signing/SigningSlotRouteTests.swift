import AssentCore
import AssentSigningProtocol
import AssentTesting
import Foundation
import SigningTesting
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("PINs over HTTP")
struct SigningSlotRouteTests {
    private static func policies(_ lock: String) -> String {
        """
              policies:
                pin: {mode: assisted, password: {minLength: 4}, lock: {\(lock)}}
              keys:
                - {usage: sign, label: payments, policy: pin}
                - {usage: auth, label: sign-in}

        """
    }

    /// A server whose devices have a PIN.
    private static func run(
        lock: String = "max: 3, delays: []",
        _ body: (SigningOverHTTP, _ session: String, TestDevice, TestDevice.Enrolled, TestPIN) async throws -> Void
    ) async throws {
        let fixture = try await ServerFixture(editing: { text in
            let name = "      name: Bank of Example\n"
            #expect(text.contains(name))
            return text.replacing(name, with: name + policies(lock), maxReplacements: 1)
        })
        do {
            let issuer = SigningOverHTTP(fixture)
            let session = try await fixture.session("ana")
            let invite = try await issuer.invite(session: session)
            let device = try TestDevice(issuer, modes: [.device, .assisted])
            let (container, pin) = try await device.enrol(invite.code, pin: "2580")
            let reply = try await issuer.ask(
                "POST", "invites/\(invite.pid)/digits", session: session, ["digits": .string(container.digits)])
            try #require(reply.json == ["state": "ACTIVE"], "\(reply.text)")
            try await body(issuer, session, device, container, pin)
        } catch {
            await fixture.stop()
            throw error
        }
        await fixture.stop()
    }

    private static func administrator(_ fixture: ServerFixture) async throws -> String {
        let session = try await fixture.session("ben")
        let file = try #require(fixture.endpoints.bootstrapFile)
        let token = try String(contentsOfFile: file, encoding: .utf8).trimmingCharacters(in: .newlines)
        let reply = try await fixture.send(
            "POST", fixture.json("administration?_action=bootstrap"),
            ServerFixture.session(session) + [("Content-Type", "application/json")], text: #"{"token":"\#(token)"}"#)
        #expect(reply.status == 200)
        return session
    }

    /// A request that is sealed and proved, to be sent as a test wants it.
    private static func request(
        _ path: String, _ device: TestDevice, _ did: SigningID, _ body: some MessagePart
    ) async throws -> (proof: String, body: String) {
        let sealed = try await device.sealed(body.encoded(), sender: did.text)
        return (try await device.proof(did, path: path, body: sealed), sealed)
    }

    @Test("A payment is approved with a PIN, and its evidence says so")
    func story() async throws {
        try await Self.run { issuer, _, device, container, pin in
            let token = try await issuer.shop()
            let made = try await issuer.create(token)
            let txn = try #require(made.json["txn"]?.string.flatMap { SigningID(text: $0) })
            let document = try await device.fetch(txn, container)
            let opened = try #require(try await pin.open("2580"))
            let body = try await device.signed(
                try device.decision(
                    document, status: "accept", number: try #require(made.json["number"]?.string),
                    unl: try opened.unl), label: "payments")
            let receipt = try await device.decide(body, container)
            #expect(receipt.content.methods == [.possession, .pin] && receipt.content.unlock?.n == 1)
            let bundle = try await issuer.party("GET", "transactions/\(txn)/evidence", token)
            let identity = try await device.trust().identity.thumbprint
            let report = EvidenceVerification.report(on: try EvidenceBundle(reading: bundle.bytes), trust: identity)
            #expect(report.exitStatus == 0, "\(report.contradicted)")
            #expect(report.attested.contains(.passwordCounted(txn: txn)))
        }
    }

    @Test("Problem documents say how many tries are left and when the next one may be")
    func problems() async throws {
        try await Self.run { issuer, session, device, container, pin in
            func refused() async throws -> Answer {
                let kept = pin.kept.withLock { $0 }
                let body = pin.body(kept, next: kept.next ?? kept.r, element: kept.publicKey)
                let request = try await Self.request("slots/unlock", device, container.did, body)
                return try await issuer.raw("slots/unlock", proof: request.proof, body: request.body)
            }
            for _ in 1...3 { #expect(try await pin.unlock("0000") == nil) }
            let locked = try await refused()
            #expect(locked.status == 403 && locked.json["code"] == "locked" && locked.json["remaining"] == 0)
            let path = "containers/\(container.did)"
            let unlock: JSONValue = ["action": "unlock", "slot": "signing"]
            #expect(try await issuer.ask("POST", path, session: session, unlock).json == ["state": "ACTIVE"])
            for _ in 1...3 { #expect(try await pin.unlock("0000") == nil) }
            #expect(try await issuer.ask("POST", path, session: session, unlock).status == 200)
            issuer.fixture.clock.advance(by: 301)
            let old = try await issuer.ask("POST", path, session: session, unlock)
            #expect(old.status == 403 && old.json["code"] == "fresh_authentication_required")
            let slots = try await issuer.ask("GET", "containers", session: session).json["containers"]?.array?.first?[
                "slots"]
            #expect(
                slots == [
                    ["slot": "signing", "gen": 0, "state": "OPEN", "tries": 3, "spare": 14, "wait": 0]
                ], "\(String(describing: slots))")
        }
    }

    @Test("The next try waits as long as the problem document says, or until the right PIN is confirmed")
    func waiting() async throws {
        try await Self.run(lock: "max: 5, delays: [0, 30]") { issuer, _, device, container, pin in
            #expect(try await pin.unlock("0000") == nil)
            let second = try #require(try await pin.unlock("2580"))
            #expect(second.evaluation.content.wait == 30 && second.evaluation.content.tries == 3)
            issuer.fixture.clock.advance(by: 10)
            let kept = pin.kept.withLock { $0 }
            let body = pin.body(kept, next: kept.r, element: kept.publicKey)
            let request = try await Self.request("slots/unlock", device, container.did, body)
            let early = try await issuer.raw("slots/unlock", proof: request.proof, body: request.body)
            #expect(early.status == 429 && early.json["code"] == "wait" && early["Retry-After"] == "20")
            #expect(early.json["retryAfter"] == 20 && early.json["remaining"] == 3)
            _ = try await device.call("slots/confirm", container.did, try await pin.confirmation(second))
            #expect(try await pin.unlock("2580")?.evaluation.content.wait == 0)
        }
    }

    @Test("Administrators lock and wipe; users do neither, and every body is one of the interface")
    func administration() async throws {
        try await Self.run { issuer, session, device, container, pin in
            let path = "containers/\(container.did)"
            func change(_ session: String, _ body: JSONValue) async throws -> Answer {
                try await issuer.ask("POST", path, session: session, body)
            }
            #expect(try await change(session, ["action": "wipe", "slot": "signing"]).status == 403)
            #expect(try await change(session, ["action": "lock", "slot": "signing"]).status == 403)
            #expect(try await change(session, ["action": "unlock"]).status == 400)
            #expect(try await change(session, ["action": "unlock", "slot": "payments"]).status == 400)
            #expect(try await change(session, ["action": "revoke", "slot": "signing"]).status == 400)
            let ben = try await issuer.fixture.session("ben")
            #expect(try await change(ben, ["action": "unlock", "slot": "signing"]).status == 404)
            let admin = try await Self.administrator(issuer.fixture)
            #expect(try await change(admin, ["action": "lock", "slot": "signing"]).json == ["state": "ACTIVE"])
            #expect(try await refused { _ = try await pin.unlock("2580") } == "locked")
            #expect(try await change(session, ["action": "unlock", "slot": "signing"]).status == 200)
            #expect(try await pin.open("2580") != nil)
            #expect(try await change(admin, ["action": "wipe", "slot": "signing"]).status == 200)
            #expect(try await refused { _ = try await pin.unlock("2580") } == "shredded")
            let gone = try await change(session, ["action": "unlock", "slot": "signing"])
            #expect(gone.status == 410 && gone.json["code"] == "shredded")
            #expect(try await device.status(container.did).slots.first?.state == .shredded)
        }
    }

    @Test("Missing, truncated, huge and foreign requests count nothing; the same one counts once, also many at once")
    func badInput() async throws {
        try await Self.run { issuer, _, device, container, pin in
            let kept = pin.kept.withLock { $0 }
            let next = Secret(bytes: device.random.bytes(32))
            let body = pin.body(kept, next: next, element: kept.publicKey)
            let good = try await Self.request("slots/unlock", device, container.did, body)
            func send(_ proof: String?, _ text: String, _ path: String = "slots/unlock") async throws -> String? {
                try await issuer.raw(path, proof: proof, body: text).json["code"]?.string
            }
            #expect(try await send(nil, good.body) == "bad_proof")
            #expect(try await send(good.proof, "") == "bad_proof")
            #expect(try await send(good.proof, String(good.body.dropLast(9))) == "bad_proof")
            #expect(try await send(good.proof, good.body, "slots/confirm") == "bad_proof")
            #expect(try await send(good.proof, String(repeating: "a", count: 70_000)) == "too_large")
            for path in ["slots/unlock", "slots/confirm", "slots/change-start", "slots/change-commit"] {
                let empty = try await Self.request(path, device, container.did, EmptyBody())
                #expect(try await send(empty.proof, empty.body, path) == "invalid_request")
                let cut = try await device.sealed(Array("{\"slot\":".utf8), sender: container.did.text)
                let proof = try await device.proof(container.did, path: path, body: cut)
                #expect(try await send(proof, cut, path) == "invalid_request")
            }
            #expect(try await device.status(container.did).slots.first?.spare == 20)
            let answers = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<20 {
                    group.addTask { try await issuer.raw("slots/unlock", proof: good.proof, body: good.body).status }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(answers.allSatisfy { $0 == 200 })
            #expect(try await device.status(container.did).slots.first?.spare == 19)
        }
    }

    @Test("Of forty guesses at once as many are answered as the policy allows")
    func parallel() async throws {
        try await Self.run { issuer, _, device, container, pin in
            let kept = pin.kept.withLock { $0 }
            let next = Secret(bytes: device.random.bytes(32))
            var requests: [(proof: String, body: String)] = []
            for _ in 0..<40 {
                let body = pin.body(kept, next: next, element: kept.publicKey)
                requests.append(try await Self.request("slots/unlock", device, container.did, body))
            }
            let codes = try await withThrowingTaskGroup(of: String?.self) { group in
                for request in requests {
                    group.addTask {
                        let answer = try await issuer.raw("slots/unlock", proof: request.proof, body: request.body)
                        return answer.status == 200 ? nil : answer.json["code"]?.string ?? "?"
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(codes.count { $0 == nil } == 3)
            #expect(codes.compactMap(\.self).allSatisfy { $0 == "locked" })
        }
    }

    private func refused(_ body: () async throws -> Void) async throws -> String? {
        do {
            try await body()
            return nil
        } catch let error as TestRefusal {
            return error.code
        }
    }
}
