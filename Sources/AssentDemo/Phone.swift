import AssentCore
import Foundation

/// The user's phone in the story: `assent device`, in processes and a home of its own.
struct Phone: Sendable {
    private let executable: String
    private let home: String

    /// Why it does not work.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    /// Makes the phone's home in the demo's directory, with what its app knows of the server.
    init(of world: DemoWorld) throws {
        executable = world.programs.appending(path: "assent").path
        home = world.directory + "/phone"
        try FileManager.default.createDirectory(
            atPath: home, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        try Data(world.app.file.utf8).write(to: URL(fileURLWithPath: clientFile), options: .atomic)
    }

    private var clientFile: String { home + "/client.yaml" }

    /// Starts a command of `assent device` there.
    func start(_ arguments: String...) throws -> ChildProcess {
        try ChildProcess(
            executable, ["device"] + arguments + ["--config", clientFile],
            environment: ["HOME": home, "XDG_STATE_HOME": home + "/state", "XDG_CONFIG_HOME": home + "/config"])
    }
}
