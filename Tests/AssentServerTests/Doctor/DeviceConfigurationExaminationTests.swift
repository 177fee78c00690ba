import AssentConfiguration
import AssentCore
import AssentJOSE
import AssentStore
import Foundation
import Logging
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("What assent doctor finds about the device configurations that nodes tell")
struct DeviceConfigurationExaminationTests {
    /// A directory with a server's file, which is gone after the test.
    private final class Place {
        let path = NSTemporaryDirectory() + "/assent-told-" + SystemRandom().uuid()
        var file: String { path + "/assent.yaml" }

        init() throws {
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            let base64 = Data(try SoftwareSigningKey.generate(.es256).privateKey.revealBytes()).base64EncodedString(
                options: [.lineLength64Characters, .endLineWithLineFeed])
            let text = "-----BEGIN PRIVATE KEY-----\n\(base64)\n-----END PRIVATE KEY-----\n"
            try PrivateFile.create(path + "/device.pem", Array(text.utf8))
            try write()
        }

        deinit { try? FileManager.default.removeItem(atPath: path) }

        func write(environment: String = "test") throws {
            let text = RegistrationDoor.file(FixtureConfiguration.yaml(upstream: 9080, refusing: 9081)).replacing(
                "    apps:\n",
                with: "    deviceConfig: {keyFile: device.pem, environment: \(environment)}\n    apps:\n",
                maxReplacements: 1)
            try Data(text.utf8).write(to: URL(fileURLWithPath: file))
        }

        func findings() async -> [Diagnosis] {
            await ServerExamination.findings(file: file).filter { $0.text.hasPrefix("the device configuration of") }
        }
    }

    /// Does what a node does at its start, and hands over the database.
    private func begin(_ place: Place) async throws -> any SQLDatabase {
        let configuration = try ServerConfiguration.load(file: place.file)
        let directory = try DataDirectory(configuration.dataDirectory)
        // Before there is a database: afterwards a key that is missing is not made anew.
        let masterKey = try directory.masterKey(keyFile: nil, random: SystemRandom())
        let database = try await directory.databaseLocation.open(clock: SystemClock())
        let context = EngineContext(
            database: database, clock: SystemClock(), random: SystemRandom(),
            masterKey: masterKey, node: "a",
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let realm = try #require(configuration.realms.first { $0.deviceConfiguration != nil })
        try await DeviceConfigurations(
            context, realm: realm.name, apps: Dictionary(realm.apps.map { ($0.id, $0) }, uniquingKeysWith: { $1 }),
            settings: #require(realm.deviceConfiguration), pin: realm.signing?.loginRules
        ).begin()
        return database
    }

    @Test("A version that was made from another file is a note, and one of this file is nothing")
    func older() async throws {
        let place = try Place()
        try await begin(place).close()
        #expect(await place.findings().isEmpty)
        try place.write(environment: "other")
        let found = await place.findings()
        #expect(found.map(\.verdict) == [.note], "\(found)")
        #expect(found.first?.text.contains("the app pay of /alpha") == true)
        #expect(found.first?.text.contains("says something else than this file") == true, "\(found)")
        try await begin(place).close()
        #expect(await place.findings().isEmpty)
    }

    @Test("A version that is more than a day ahead of the clock, which no app takes, is a problem")
    func ahead() async throws {
        let place = try Place()
        let database = try await begin(place)
        for (seconds, isProblem) in [(80_000, false), (90_000, true)] {
            let version = SystemClock().epochSeconds + Int64(seconds)
            _ = try await database.run(SQLStatement("UPDATE device_configs SET version = \(version)"))
            let found = await place.findings()
            let expected: [Diagnosis.Verdict] = isProblem ? [.problem] : []
            #expect(found.map(\.verdict) == expected, "\(seconds): \(found)")
            #expect(found.allSatisfy { $0.text.contains("more than a day ahead") }, "\(found)")
        }
        try await database.close()
    }
}
