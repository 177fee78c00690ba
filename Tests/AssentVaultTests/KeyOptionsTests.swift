import AssentCore
import Testing

@testable import AssentVault

@Suite("Key options")
struct KeyOptionsTests {
    /// Devices. Android's as the vendor's `getEncryptor` tells them apart: by version and StrongBox.
    enum Device {
        static let nothing = KeyCapabilities()
        static let nothingWithBiometry = KeyCapabilities(presence: [.pin, .biometry], noticesEnrollment: true)
        static let androidL = KeyCapabilities(wrappings: [.rsa], presence: [.pin])
        static let androidM = KeyCapabilities(wrappings: [.rsa, .aes], presence: [.pin, .biometry])
        static let androidN = KeyCapabilities(
            wrappings: [.rsa, .aes], presence: [.pin, .biometry], noticesEnrollment: true)
        static let androidP = KeyCapabilities(
            wrappings: [.rsa, .aes], hasSeparateChip: true, presence: [.pin, .biometry], noticesEnrollment: true)
        static let iPhone = KeyCapabilities(
            wrappings: [.ecies], hasSeparateChip: true, presence: [.pin, .biometry], noticesEnrollment: true)
        static let iPhoneWithoutFace = KeyCapabilities(
            wrappings: [.ecies], hasSeparateChip: true, presence: [.pin], noticesEnrollment: true)
        static let linuxWithToken = KeyCapabilities(wrappings: [.ecies], hasSeparateChip: true, presence: [.pin])
    }

    /// A device, a demand and what comes of them.
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let device: KeyCapabilities
        let demand: KeyDemand
        var expected: Result<Expected, KeyProviderError>

        struct Expected: Equatable {
            var protection = KeyProtection.hardware
            var wrapping: KeyWrapping
            var chip = false
            var presence: PresenceMethod?
            var isInvalidated = false
        }

        static func gives(
            _ name: String, _ device: KeyCapabilities, _ demand: KeyDemand, _ expected: Expected
        ) -> Row {
            Row(testDescription: name, device: device, demand: demand, expected: .success(expected))
        }

        static func refuses(
            _ name: String, _ device: KeyCapabilities, _ demand: KeyDemand, _ code: KeyProviderError.Code
        ) -> Row {
            Row(testDescription: name, device: device, demand: demand, expected: .failure(KeyProviderError(code, "")))
        }

        static let hardware = KeyDemand(level: .requireHardware)
        static let bound = KeyDemand(level: .requireHardware, presence: .biometryEnrolledNow)
        static let chip = KeyDemand(level: .requireHardware, separateChip: true, presence: .biometryEnrolledNow)

        static let all: [Row] = [
            .gives("AndroidLEncryptor wraps with RSA", Device.androidL, hardware, .init(wrapping: .rsa)),
            .gives("AndroidMEncryptor encrypts with AES", Device.androidM, hardware, .init(wrapping: .aes)),
            .gives(
                "AndroidNEncryptor loses its key to a new finger", Device.androidN, bound,
                .init(wrapping: .aes, presence: .biometry, isInvalidated: true)),
            .gives(
                "AndroidPEncryptor uses StrongBox", Device.androidP, chip,
                .init(wrapping: .aes, chip: true, presence: .biometry, isInvalidated: true)),
            .gives(
                "A Secure Enclave opens ECIES", Device.iPhone, chip,
                .init(wrapping: .ecies, chip: true, presence: .biometry, isInvalidated: true)),
            .gives(
                "A token or a TPM opens ECIES after a PIN", Device.linuxWithToken,
                KeyDemand(level: .requireHardware, presence: .anyMethod),
                .init(wrapping: .ecies, chip: true, presence: .pin)),
            .gives(
                "Biometry comes before a PIN", Device.iPhone,
                KeyDemand(level: .requireHardware, presence: .anyMethod),
                .init(wrapping: .ecies, chip: true, presence: .biometry)),
            .gives(
                "Without a face a PIN will do when any method does", Device.iPhoneWithoutFace,
                KeyDemand(level: .preferHardware, presence: .anyMethod),
                .init(wrapping: .ecies, chip: true, presence: .pin)),
            .gives(
                "Biometry of any time does not lose the key", Device.androidM,
                KeyDemand(level: .requireHardware, presence: .biometry), .init(wrapping: .aes, presence: .biometry)),
            .gives(
                "preferHardware takes hardware where there is some", Device.androidL,
                KeyDemand(level: .preferHardware), .init(wrapping: .rsa)),
            .gives(
                "preferHardware takes software where there is none", Device.nothing, KeyDemand(level: .preferHardware),
                .init(protection: .software, wrapping: .ecies)),
            .gives(
                "software stays software on a device with a chip", Device.iPhone, KeyDemand(level: .software),
                .init(protection: .software, wrapping: .ecies)),
            .gives(
                "Software keys can ask for a finger too", Device.nothingWithBiometry,
                KeyDemand(level: .software, presence: .biometryEnrolledNow),
                .init(protection: .software, wrapping: .ecies, presence: .biometry, isInvalidated: true)),
            .refuses("requireHardware never becomes software", Device.nothing, hardware, .unsupported),
            .refuses(
                "A chip of its own never becomes the processor's", Device.androidN, chip, .unsupported),
            .refuses(
                "A chip of its own never becomes software", Device.nothing,
                KeyDemand(level: .preferHardware, separateChip: true), .unsupported),
            .refuses(
                "Software has no chip", Device.iPhone, KeyDemand(level: .software, separateChip: true), .unsupported),
            .refuses("Before Android N no key is bound to what is enrolled", Device.androidM, bound, .unsupported),
            .refuses("A token without a reader has no biometry", Device.linuxWithToken, bound, .userAbsent),
            .refuses("A face must be enrolled", Device.iPhoneWithoutFace, bound, .userAbsent),
            .refuses(
                "Biometry never becomes a PIN", Device.iPhoneWithoutFace,
                KeyDemand(level: .preferHardware, presence: .biometry), .userAbsent),
            .refuses(
                "Nobody can be asked where nothing is set up", Device.nothing,
                KeyDemand(level: .software, presence: .anyMethod), .userAbsent),
        ]
    }

    @Test("follow from the device and the demand", arguments: Row.all)
    func rows(_ row: Row) {
        let found = Result<Row.Expected, KeyProviderError> { () throws(KeyProviderError) in
            let options = try KeyOptions.choose(for: row.demand, on: row.device)
            return Row.Expected(
                protection: options.protection, wrapping: options.wrapping, chip: options.isInSeparateChip,
                presence: options.presence, isInvalidated: options.isInvalidatedByBiometricEnrollment)
        }
        #expect(found == row.expected)
        if case .failure(let error) = found { #expect(error.detail.count > 20) }
    }

    @Test("are never weaker than the demand, whatever the device")
    func neverWeaker() throws {
        let wrappings: [Set<KeyWrapping>] = [[], [.rsa], [.aes], [.ecies], Set(KeyWrapping.allCases)]
        let methods: [Set<PresenceMethod>] = [[], [.pin], [.biometry], [.pin, .biometry]]
        let demands: [KeyDemand.Presence] = [.none, .anyMethod, .biometry, .biometryEnrolledNow]
        var (chosen, refused) = (0, 0)
        for wrapping in wrappings {
            for presence in methods {
                for flags in 0..<8 {
                    let device = KeyCapabilities(
                        wrappings: wrapping, hasSeparateChip: flags & 1 == 1, presence: presence,
                        noticesEnrollment: flags & 2 == 2)
                    for level in ProtectionLevel.allCases {
                        for asked in demands {
                            let demand = KeyDemand(level: level, separateChip: flags & 4 == 4, presence: asked)
                            guard let options = try? KeyOptions.choose(for: demand, on: device) else {
                                refused += 1
                                continue
                            }
                            chosen += 1
                            #expect(level != .requireHardware || options.protection == .hardware)
                            #expect(level != .preferHardware || wrapping.isEmpty || options.protection == .hardware)
                            #expect(!demand.separateChip || options.isInSeparateChip)
                            #expect(asked == .none || options.presence != nil)
                            #expect(options.presence.map { presence.contains($0) } ?? true)
                            #expect(asked != .biometry || options.presence == .biometry)
                            #expect(
                                (asked == .biometryEnrolledNow) == options.isInvalidatedByBiometricEnrollment)
                            #expect(options.protection == .software || wrapping.contains(options.wrapping))
                        }
                    }
                }
            }
        }
        #expect(chosen > 100 && refused > 100)
    }
}
