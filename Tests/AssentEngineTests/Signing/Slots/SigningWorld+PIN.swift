import AssentCore
import AssentSigningProtocol
import SigningTesting
import StoreTesting
import Testing

@testable import AssentEngine

extension SigningWorld {
    static func rules(_ change: (inout PasswordRules) -> Void = { _ in }) -> PasswordRules {
        var rules = PasswordRules(minLength: 4, maxLength: 12)
        change(&rules)
        return rules
    }

    /// An issuer whose devices have a PIN.
    static func withPIN(
        biometry: Bool = false, notifier: (any Notifier)? = nil, _ change: (inout PasswordRules) -> Void = { _ in },
        change settings: (inout SigningSettings) -> Void = { _ in }
    ) async throws -> SigningWorld {
        let cost = try #require(PasswordCost("$scrypt$ln=14,r=8,p=1"))
        return try await SigningWorld(notifier: notifier) {
            $0.policies = [
                ProtectionPolicy(
                    id: "pin", biometry: biometry,
                    password: ProtectionPolicy.Password(
                        mode: .assisted, cost: cost, rules: rules(change),
                        lock: .assisted(AssistedPasswordLock(max: 5, cap: 20, delays: []))))
            ]
            $0.keys = [SigningSettings.offered(.sign, "payments", policy: "pin", of: $0.policies)]
            settings(&$0)
        }
    }

    /// A device of Ana's that may approve with the PIN 2580.
    func enrolledWithPIN() async throws -> (device: TestDevice, container: TestDevice.Enrolled, pin: TestPIN) {
        let invite = try await invite()
        let device = try TestDevice(self, modes: [.device, .assisted])
        let (container, pin) = try await device.enrol(invite.code, pin: "2580")
        let status = try await provider.invites.enter(digits: container.digits, ana, pid: invite.pid)
        try #require(status.state == "ACTIVE")
        return (device, container, pin)
    }

    /// What a world of ``withPIN(biometry:notifier:_:change:)`` has left, and the device in it.
    private struct EnrolledPIN: Sendable {
        let world: Left
        let device: TestDevice
        let container: TestDevice.Enrolled
        let pin: TestPIN

        init() async throws {
            let world = try await SigningWorld.withPIN()
            (device, container, pin) = try await world.enrolledWithPIN()
            self.world = try await world.left()
        }
    }

    private static let enrolledPIN = Task { try await EnrolledPIN() }

    /// An issuer whose devices have a PIN, and such a device, for tests of what comes after its enrolment: on SQLite
    /// one is enrolled, and copied.
    static func withEnrolledPIN() async throws -> (
        world: SigningWorld, device: TestDevice, container: TestDevice.Enrolled, pin: TestPIN
    ) {
        guard !TestDatabase.isPostgreSQL else {
            let world = try await withPIN()
            let (device, container, pin) = try await world.enrolledWithPIN()
            return (world, device, container, pin)
        }
        let first = try await enrolledPIN.value
        let world = try await SigningWorld(beginningWith: first.world)
        let device = TestDevice(world, copying: first.device)
        return (world, device, first.container, TestPIN(copying: first.pin, device: device))
    }
}
