import AssentConfiguration
import AssentCore
import AssentOTP
import AssentSigningProtocol
import Foundation
import SigningTesting
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("Life of devices and keys over HTTP")
struct SigningLifeRouteTests {
    @Test("A shop shows an id and a number; whoever scans it first approves")
    func claim() async throws {
        try await ServerFixture.run { fixture in
            let issuer = SigningOverHTTP(fixture)
            let session = try await fixture.session("ana")
            let (device, container) = try await issuer.enrolled(session: session)
            let token = try await issuer.shop()
            func create(_ change: (inout JSONObject) -> Void) async throws -> Answer {
                try await issuer.create(token) { body in
                    body["user"] = nil
                    body["claim"] = true
                    body["origin"] = ["place": "Vienna", "address": "192.0.2.7"]
                    change(&body)
                }
            }
            for change: (inout JSONObject) -> Void in [
                { $0["user"] = "ana" }, { $0["claim"] = nil }, { $0["claim"] = false }, { $0["origin"] = nil },
                { $0["ttl"] = 121 },
            ] {
                #expect(try await create(change).json["code"] == "invalid_request")
            }
            let made = try await create { _ in }
            #expect(made.status == 201, "\(made.text)")
            let ticket = try #require(made.json["tds"]?.string)
            let txn = try #require(made.json["txn"]?.string.flatMap { SigningID(text: $0) })
            #expect(try await issuer.party("GET", "transactions/\(txn)", token).json["state"] == "PENDING")
            #expect(try await device.list(container.did).isEmpty)
            let status: ContainerStatus = try await device.ask(
                "transactions/claim", container.did, ClaimBody(ticket: ticket))
            #expect(status.pending == 1)
            let document = try await device.fetch(txn, container).content
            #expect(document.body.origin?.place == "Vienna" && document.match != nil)
            _ = try await device.approve(txn, container, number: made.json["number"]?.string)
            #expect(try await issuer.party("GET", "transactions/\(txn)", token).json["state"] == "APPROVED")
        }
    }

    @Test("The code of a reset is for one container of the user, and leads its device to new keys")
    func reset() async throws {
        try await ServerFixture.run { fixture in
            let issuer = SigningOverHTTP(fixture)
            let session = try await fixture.session("ana")
            let (device, container) = try await issuer.enrolled(session: session)
            let wish: JSONValue = ["did": .string(container.did.text)]
            let ben = try await fixture.session("ben")
            #expect(try await issuer.ask("POST", "invites", session: ben, wish).status == 404)
            #expect(try await issuer.ask("POST", "invites", session: session, ["did": "x"]).status == 404)
            let invite = try await issuer.invite(session: session, wish)
            let (reply, request) = try await device.call(
                "renew/start", container.did, RenewStartBody(code: invite.code))
            let kid = try ProtocolKey(device.deviceKey).thumbprint.text
            let offer = try await device.trust().reply(reply, as: Offer.self, audience: kid, request: request).content
            #expect(offer.pid.text == invite.pid && offer.did == container.did && offer.commit == .digits)
            #expect(try await issuer.ask("DELETE", "invites/\(invite.pid)", session: session).status == 204)
            #expect(try await device.status(container.did).state == .active)
        }
    }

    @Test("An administrator gives the issuer a new identity key, and withdraws online keys; nobody else does")
    func keys() async throws {
        try await ServerFixture.run { fixture in
            let issuer = SigningOverHTTP(fixture)
            let nobody = try await fixture.session("ben")
            let admin = try await fixture.session("ana")
            let file = try #require(fixture.endpoints.bootstrapFile)
            let token = try String(contentsOfFile: file, encoding: .utf8).trimmingCharacters(in: .newlines)
            let bootstrap = try await fixture.send(
                "POST", fixture.json("administration?_action=bootstrap"),
                [("Content-Type", "application/json")] + ServerFixture.session(admin), text: #"{"token":"\#(token)"}"#)
            try #require(bootstrap.status == 200)
            let rotate: JSONValue = ["action": "rotateIdentity"]
            #expect(try await issuer.ask("POST", "keys", session: nobody, rotate).status == 403)
            #expect(try await issuer.ask("POST", "keys", session: admin, ["action": "explode"]).status == 400)
            let before = try IssuerConfiguration(reading: try await issuer.configuration().bytes)
            let changed = try await issuer.ask("POST", "keys", session: admin, rotate)
            let after = try IssuerConfiguration(reading: try await issuer.configuration().bytes)
            #expect(changed.status == 200 && changed.json["identity"]?.string == after.identity.thumbprint.text)
            #expect(after.next.count == 1 && after.identity != before.identity)
            let withdrawn = try await issuer.ask("POST", "keys", session: admin, ["action": "withdrawOnline"])
            let trust = try IssuerTrust(
                IssuerConfiguration(reading: try await issuer.configuration().bytes), issuer: issuer.name,
                anchor: .pinned(before.identity))
            #expect(withdrawn.json["min"] == .integer(Int64(trust.minimum)) && trust.minimum > 1)
        }
    }

    @Test("The file names the keys for one-time codes, and what no device could use is a mistake with its line")
    func codes() throws {
        func read(_ codes: String) throws -> [OneTimeKeySettings] {
            let text = "name: Bank\ncodes:\n\(codes)\n"
            return try ConfigurationFile.read(text, file: "assent.yaml") { reader in
                try SigningLoader(reader: reader, realm: "/alpha").settings()
            }.oneTimeKeys
        }
        let keys = try read(
            """
              - {label: timed, type: totp, period: 60, digits: 8, algorithm: sha256}
              - {label: counted, type: hotp}
              - {label: bank, type: ocra, suite: "OCRA-1:HOTP-SHA256-8:QN08"}
            """)
        #expect(keys.map(\.label) == ["timed", "counted", "bank"])
        #expect(keys.first?.kind == .time(period: 60) && keys.first?.digits == 8 && keys.first?.algorithm == .sha256)
        for wrong in [
            "  - {label: a, type: push}", "  - {label: a, type: ocra, suite: x}", "  - {type: hotp}",
            "  - {label: a, type: hotp, period: 30}", "  - {label: a, type: totp, algorithm: MD5}",
            "  - {label: A, type: totp}", "  - {label: a, type: hotp}\n  - {label: a, type: hotp}",
        ] {
            #expect(throws: ConfigurationError.self, "\(wrong)") { try read(wrong) }
        }
    }
}
