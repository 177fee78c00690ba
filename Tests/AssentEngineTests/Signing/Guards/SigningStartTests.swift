import AssentCore
import AssentJOSE
import AssentSigningProtocol
import AssentStore
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("The first message of a device, and what is counted of guesses")
struct SigningStartTests {
    private static func message(
        _ world: SigningWorld, _ device: TestDevice, _ code: InviteCode, issuer: String? = nil, nonce: String? = nil
    ) async throws -> String {
        let start = Start(
            issuer: issuer ?? world.name, code: code, nonce: nonce ?? world.provider.door.nonce(),
            jwk: try ProtocolKey(device.deviceKey), modes: device.modes, info: ["model": "laptop"])
        return try await SignedMessage.sign(start, with: device.deviceKey).compact
    }

    private static func body(_ message: String, _ device: TestDevice) async throws -> String {
        let sender = try ProtocolKey(device.deviceKey).thumbprint.text
        return try await device.sealed(StartBody(start: message).encoded(), sender: sender)
    }

    @Test("It is for its own issuer, by its own key, in an envelope of its own, and with a nonce of five minutes")
    func message() async throws {
        let world = try await SigningWorld()
        let code = try await world.invite().code
        let (device, other) = (try TestDevice(world), try TestDevice(world))
        let old = try await Self.message(world, device, code)
        world.base.clock.advance(by: 300)
        let good = try await Self.message(world, device, code)
        let foreign = try await Self.message(world, device, code, issuer: "https://other.example")
        let forged = try await Self.message(world, device, code, nonce: String(repeating: "A", count: 43))
        for (message, sender, expected) in [
            (foreign, device, "bad_proof"), (good.withAnotherSignature, device, "bad_proof"),
            (good, other, "bad_proof"),
            (old, device, "use_nonce"), (forged, device, "use_nonce"),
        ] {
            #expect(try await refusal { _ = try await sender.start(message) } == expected)
        }
        #expect(try await world.base.database.run(.read("SELECT did FROM signing_enrolments")).isEmpty)
        let offer = try await device.start(good)
        // The same bytes, sent once more, get the same bytes.
        #expect(try await device.start(good).compact == offer.compact)
    }

    @Test("Two devices with one code have enrolments of their own, and so has one device with two codes")
    func own() async throws {
        let world = try await SigningWorld()
        let (one, two) = (try await world.invite(), try await world.invite())
        let (device, other) = (try TestDevice(world), try TestDevice(world))
        let first = try await device.start(one.code).content
        let second = try await other.start(one.code).content
        let third = try await device.start(two.code).content
        #expect(Set([first.did, second.did, third.did]).count == 3)
        #expect(first.pid.text == one.pid && second.pid.text == one.pid && third.pid.text == two.pid)
        for (user, did) in [(device, first.did), (other, second.did), (device, third.did)] {
            #expect(try await user.status(did).state == .unconfirmed)
        }
        #expect(try await refusal { _ = try await other.status(first.did) } == "bad_proof")
    }

    @Test("An address has ten wrong codes in fifteen minutes, of enrolments and resets together; others have their own")
    func wrongCodes() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let stranger = try TestDevice(world)
        world.startWindow(3600)
        func start(from address: String) async throws -> SigningErrorCode? {
            let message = try await Self.message(world, stranger, InviteCode(random: stranger.random))
            return try await world.code(
                .start, proof: nil, body: try await Self.body(message, stranger), from: address)
        }
        func reset(from address: String) async throws -> SigningErrorCode? {
            let body = try await device.sealed(
                RenewStartBody(code: InviteCode(random: device.random)).encoded(), sender: container.did.text)
            let proof = try await device.proof(container.did, path: "renew/start", body: body)
            return try await world.code(.renewStart, proof: proof, body: body, from: address)
        }
        for _ in 0..<5 {
            #expect(try await start(from: "192.0.2.1") == .invalidCode)
            #expect(try await reset(from: "192.0.2.1") == .invalidCode)
        }
        for seconds in [899.0, 1] {
            #expect(try await start(from: "192.0.2.1") == .rateLimited)
            #expect(try await reset(from: "192.0.2.1") == .rateLimited)
            #expect(try await start(from: "192.0.2.2") == .invalidCode)
            #expect(try await reset(from: "192.0.2.2") == .invalidCode)
            world.base.clock.advance(by: seconds)
        }
        #expect(try await start(from: "192.0.2.1") == .invalidCode)
        #expect(try await reset(from: "192.0.2.1") == .invalidCode)
    }

    @Test(
        "An address has a hundred calls without a good proof in fifteen minutes, also of containers that do not exist")
    func badProofs() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        world.startWindow(3600)
        let unknown = try await device.proof(SigningID(random: device.random), path: "status", body: "x")
        for (proof, expected, address) in [
            ("x", SigningErrorCode.badProof, "192.0.2.1"), (unknown, .unknownContainer, "192.0.2.2"),
        ] {
            func code(from address: String) async throws -> SigningErrorCode? {
                try await world.code(.status, proof: proof, body: "x", from: address)
            }
            for _ in 0..<100 { #expect(try await code(from: address) == expected) }
            #expect(try await code(from: address) == .rateLimited)
            #expect(try await code(from: "192.0.2.9") == expected)
            world.base.clock.advance(by: 899)
            #expect(try await code(from: address) == .rateLimited)
            world.base.clock.advance(by: 1)
            #expect(try await code(from: address) == expected)
        }
        #expect(try await device.status(container.did).state == .active)
    }

    @Test("That a key was replaced is said to the one who has it, not to everybody who knows its name")
    func retired() async throws {
        let world = try await SigningWorld()
        let (old, container) = try await world.enrolled()
        world.base.clock.advance(by: 350 * 86400)
        let new = try TestDevice(world)
        let renewal = try await LowRenewal(old, new, container)
        let enrolled = try await renewal.complete(try await renewal.body(old, by: "payments"), old, new)
        let _: ContainerStatus = try await new.ask("renew/confirm", container.did, ConfirmBody(echo: enrolled.echo))
        let body = try await old.sealed(EmptyBody().encoded(), sender: container.did.text)
        let proof = try await old.proof(container.did, path: "status", body: body)
        #expect(try await refusal { _ = try await world.send("status", proof: proof, body: body) } == "key_retired")
        // Nor does a key prove a call that was never a device key.
        let byPayments = try await old.proof(container.did, path: "status", body: body, key: try old.key("payments"))
        #expect(try await refusal { _ = try await world.send("status", proof: byPayments, body: body) } == "bad_proof")
        let forged = proof.withAnotherSignature
        #expect(try await refusal { _ = try await world.send("status", proof: forged, body: body) } == "bad_proof")
    }

    @Test("A container that has ended is remembered for a year")
    func year() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        #expect(try await world.provider.devices.change(world.ana, did: container.did.text, .revoke) == .revoked)
        world.base.clock.advance(by: 365 * 86400)
        device.forgetTrust()
        #expect(try await device.status(container.did).state == .revoked)
        world.base.clock.advance(by: 1)
        #expect(try await refusal { _ = try await device.status(container.did) } == "unknown_container")
    }
}
