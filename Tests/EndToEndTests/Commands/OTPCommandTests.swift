import AssentCore
import AssentServer
import Foundation
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite("assent otp")
struct OTPCommandTests {
    private static let codes = """
              codes:
                - {label: counted, type: hotp, digits: 8}
                - {label: asked, type: ocra, suite: "OCRA-1:HOTP-SHA256-8:QN08"}

        """

    private static let journey = """
              DeviceCode:
                entry: name
                nodes:
                  name: {type: UsernameCollectorNode, outcomes: {outcome: code}}
                  code:
                    type: DeviceCodeVerifierNode
                    config: {key: counted}
                    outcomes: {successOutcome: success, failureOutcome: failure, notRegisteredOutcome: failure}

        """

    @Test("The device makes codes with the server's keys: one signs in once, and what fits no key is refused")
    func story() async throws {
        let next = "      ConfirmTransfer:\n"
        try await DeviceTests.run(with: Self.codes, editing: { $0.replacing(next, with: Self.journey + next) }) {
            world, user, device in
            let desk = DeviceDesk(world: world, user: user, device: device)
            let early = try await desk.onDevice("otp")
            #expect(early.status == 1 && early.errors.contains("not enrolled"), "\(early.errors)")
            try await desk.enrol()
            let list = try await desk.onDevice("otp", "--list")
            #expect(list.status == 0 && list.output == "asked  challenge\ncounted  counter", "\(list)")

            func signIn(_ code: String) async throws -> Program.Result {
                try await user.run(
                    "login", "--config", user.clientFile, "--journey", "DeviceCode",
                    typing: [world.account.username, code])
            }
            let counted = try await desk.onDevice("otp", "--key", "counted")
            #expect(counted.status == 0 && counted.output.wholeMatch(of: /[0-9]{8}/) != nil, "\(counted.errors)")
            let signedIn = try await signIn(counted.output)
            #expect(signedIn.status == 0, "\(signedIn.errors)")
            #expect(try await signIn(counted.output).status != 0)

            func answer(_ challenge: String) async throws -> JSONValue {
                let result = try await desk.onDevice("otp", "--key", "asked", "--challenge", challenge, "--json")
                #expect(result.status == 0, "\(result.errors)")
                return try JSONValue.parse(result.output)
            }
            let asked = try await answer("12345678")
            #expect(asked["key"] == "asked" && asked["code"]?.string?.count == 8)
            #expect(asked["expires_at"] == JSONValue.null)
            #expect(try await answer("12345678") == asked)
            #expect(try await answer("12345679") != asked)

            for (words, status, text) in [
                ([], 1, "Name one of the keys: asked, counted."), (["--key", "nothing"], 1, "Name one of the keys"),
                (["--key", "asked"], 1, "This key answers a challenge"),
                (["--key", "asked", "--challenge", "letters"], 1, "[invalidArgument]"),
                (["--key", "counted", "--challenge", "1"], 1, "This key takes no challenge."),
                (["--list", "--key", "asked"], 64, "--list makes no code"),
            ] as [([String], Int32, String)] {
                let refused = try await desk.onDevice(["otp"] + words)
                #expect(refused.status == status && refused.errors.contains(text), "\(words): \(refused.errors)")
                #expect(refused.output.isEmpty, "\(words): \(refused.output)")
            }
        }
    }
}
