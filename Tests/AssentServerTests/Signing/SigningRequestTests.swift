import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import Foundation
import SigningTesting
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("Transaction signing over HTTP: requests that are not of the interface", .server)
struct SigningRequestTests {
    private let fixture: ServerFixture
    private let issuer: SigningOverHTTP

    init() throws {
        fixture = try #require(ServerFixture.shared)
        issuer = SigningOverHTTP(fixture)
    }

    private static let json = [("Content-Type", "application/json")]

    @Test("A call has one proof: with two of them, of which one is good, it is refused")
    func proofs() async throws {
        let (device, container) = try await issuer.enrolled(session: try await fixture.session("ana"))
        let body = try await device.sealed(EmptyBody().encoded(), sender: container.did.text)
        let proof = try await device.proof(container.did, path: "status", body: body)
        func send(_ proofs: [String], type: String = "application/jose") async throws -> Answer {
            try await fixture.send(
                "POST", fixture.signing("device/status"),
                [("Content-Type", type)] + proofs.map { ("TSP-Proof", $0) }, text: body)
        }
        for proofs in [[proof, "x"], ["x", proof], [proof, proof]] {
            let reply = try await send(proofs)
            #expect(reply.status == 401 && reply.json["code"] == "bad_proof")
        }
        for type in ["application/JOSE", "application/jose; charset=utf-8"] {
            #expect(try await send([proof], type: type).status == 200)
        }
        for type in ["application/json", "application/jose+json"] {
            #expect(try await send([proof], type: type).status == 415)
        }
        _ = try await issuer.ask(
            "POST", "containers/\(container.did)", session: try await fixture.session("ana"), ["action": "revoke"])
    }

    @Test("A transaction is asked for with a key for repetitions, and with members of the right type")
    func transactions() async throws {
        let token = try await issuer.shop()
        let good: JSONValue = [
            "user": "ana", "template": "payment", "authorization_details": .string(SigningOverHTTP.details),
        ]
        let keyless = try await fixture.send(
            "POST", fixture.signing("transactions"), ServerFixture.bearer(token) + Self.json,
            body: good.serializedBytes())
        #expect(keyless.status == 400 && keyless.json["code"] == "invalid_request")
        let changes: [(inout JSONObject) -> Void] = [
            { $0["ttl"] = "60" }, { $0["user"] = 7 }, { $0["template"] = nil }, { $0["authorization_details"] = [:] },
            { $0["origin"] = ["place": "Vienna"] }, { $0["origin"] = ["address": "192.0.2.7"] }, { $0["origin"] = "x" },
            { $0["did"] = 1 }, { $0["locale"] = 1 }, { $0["claim"] = true }, { $0["claim"] = false },
            { $0["claim"] = "true" }, { $0["user"] = nil },
        ]
        for (number, change) in changes.enumerated() {
            let reply = try await issuer.create(token, change)
            #expect(reply.status == 400 && reply.json["code"] == "invalid_request", "change \(number)")
        }
        let made = try await issuer.create(token) {
            $0["locale"] = "de-CH"
            $0["ttl"] = 60
            $0["origin"] = ["place": "Vienna", "address": "192.0.2.7"]
        }
        let txn = try #require(made.json["txn"]?.string)
        for wait in ["-1", "x", "1.5"] {
            let path = "transactions/\(txn)?wait=\(wait)"
            #expect(try await issuer.party("GET", path, token).status == 400, "\(wait)")
        }
        #expect(made.json["exp"] == .integer(Int64(fixture.clock.now.timeIntervalSince1970) + 60))
        let rows = try await fixture.rows("SELECT content FROM signing_transactions WHERE txn = \(txn)")
        let draft = try DocumentDraft(plaintext: Array(try #require(rows.first).text("content").utf8))
        let body = draft.body
        #expect(body.locale == "de-CH" && body.origin?.place == "Vienna" && body.origin?.address == "192.0.2.7")
    }

    @Test("What users send has the members of the interface alone, and each in its bounds")
    func users() async throws {
        let session = try await fixture.session("ana")
        let invite = try await issuer.invite(session: session)
        let bodies: [(String, JSONValue)] = [
            ("invites", ["more": 1]), ("invites", ["user": 1]), ("invites", ["did": 1]), ("invites", []),
            ("invites/\(invite.pid)/digits", [:]), ("invites/\(invite.pid)/digits", ["digits": 12_345_678]),
            ("invites/\(invite.pid)/digits", ["digits": .string(String(repeating: " ", count: 65))]),
            ("invites/\(invite.pid)/digits", ["digits": "12345678", "more": 1]),
            ("keys", ["action": "rotateIdentity", "more": 1]), ("keys", [:]), ("keys", ["action": 1]),
        ]
        for (path, body) in bodies {
            let reply = try await issuer.ask("POST", path, session: session, body)
            #expect(reply.status == 400 && reply.json["code"] == "invalid_request", "\(path) \(body)")
        }
        #expect(try await issuer.ask("GET", "invites/\(invite.pid)", session: session).json == ["state": "OPEN"])
        let nobody = try await fixture.send("GET", fixture.signing("containers"))
        #expect(nobody.status == 401 && nobody["WWW-Authenticate"] == "Bearer")
        let method = try await fixture.send("PUT", fixture.signing("invites"), ServerFixture.session(session))
        #expect(method.status == 405)
    }
}

@Suite("The errors of transaction signing and their page")
struct SigningErrorPageTests {
    @Test("Each error of the protocol has the status that the page says")
    func statuses() throws {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(
            contentsOf: tests.deletingLastPathComponent().appending(path: "docs/transaction-signing.md"),
            encoding: .utf8)
        let section = try #require(page.components(separatedBy: "\n## Errors\n").last)
        var statuses: [String: Int] = [:]
        for line in section.components(separatedBy: "\n\nCodes of the SDK").first?.split(separator: "\n") ?? [] {
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            guard cells.count >= 2, cells[0].hasPrefix("`") else { continue }
            let codes = cells[0].split(separator: ",").map {
                $0.trimmingCharacters(in: CharacterSet(charactersIn: "` "))
            }
            let numbers = cells[1].split(separator: ",").compactMap { Int($0.trimmingCharacters(in: .whitespaces)) }
            for (index, code) in codes.enumerated() {
                // Several codes in one row have one status together, or one each.
                statuses[code] =
                    numbers.count == 1 ? numbers.first : numbers.indices.contains(index) ? numbers[index] : nil
            }
        }
        for code in SigningErrorCode.sent {
            #expect(statuses[code.rawValue] == SigningRefusal(code).status, "\(code)")
        }
    }
}
