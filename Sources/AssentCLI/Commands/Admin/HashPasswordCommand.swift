import ArgumentParser
import AssentConfiguration
import AssentCore
import AssentEngine
import AssentServer
import Foundation

/// `assent admin hash-password`
struct HashPasswordCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hash-password", abstract: "Make the passwordHash of a user for assent.yaml. No server is asked.",
        discussion: """
            The password comes from the prompt, twice, or from a file or descriptor; never from the command line.
            It has at least 8 characters, or as many as the server's file says, and is not one that anyone tries first.

            Example:  assent admin hash-password --config assent.yaml --password-file ana.password
            """)

    @Option(
        name: .shortAndLong,
        help: "The server's file, for its passwordCost and its passwords; otherwise the cost is 131072 (2^17).",
        completion: .file(extensions: ["yaml", "yml"]))
    var config: String?

    @OptionGroup var password: NewPasswordOptions

    func run() async throws {
        let console = Console()
        try await Outcome.run(console) {
            let configuration = try config.map(load)
            let logN = configuration?.passwordCost.trailingZeroBitCount ?? PasswordPolicy().logN
            let rules = configuration?.passwordRules ?? PasswordRequirements()
            let password = try password.read()
            // Whose it is nobody says here, so that the name alone is not looked at.
            if let fault = rules.fault(in: password, of: "") {
                throw CommandFailure("\(fault) Nothing was made; try again.")
            }
            console.say(
                try PasswordHash.make(password, cost: PasswordHash.Cost(logN: logN), random: SystemRandom()).text)
        }
    }

    /// The server's file. What is wrong with it may be the very hash that is to be made.
    private func load(_ file: String) throws -> ServerConfiguration {
        do {
            return try ServerConfiguration.load(file: file)
        } catch let error as ConfigurationError {
            throw CommandFailure(
                "assent: \(error). Without --config no file is read, and the hash has the usual cost.",
                status: .configuration)
        }
    }
}

/// Where a new password comes from.
struct NewPasswordOptions: ParsableArguments {
    @Option(
        name: .long, help: "A file that holds the password. Without it you are asked.", completion: .file())
    var passwordFile: String?

    @Option(name: .customLong("password-fd"), help: "A file descriptor to read the password from.")
    var passwordDescriptor: Int32?

    /// Whether a file or a descriptor is named.
    var isGiven: Bool { passwordFile != nil || passwordDescriptor != nil }

    func validate() throws {
        guard passwordFile == nil || passwordDescriptor == nil else {
            throw ValidationError("Name a file or a descriptor for the password, not both.")
        }
    }

    /// The password, which is UTF-8 text of a length that the server takes.
    ///
    /// - Throws: ``CommandFailure``, `ValidationError`.
    func read() throws -> Secret {
        let password =
            try SecretSource.read(file: passwordFile, descriptor: passwordDescriptor, "the password") ?? asked()
        guard String(validating: password.revealBytes(), as: UTF8.self) != nil else {
            throw CommandFailure("A password is UTF-8 text, and this is not.")
        }
        guard (1...Passwords.byteLimit).contains(password.count) else {
            throw CommandFailure("A password has from 1 to \(Passwords.byteLimit) bytes.")
        }
        return password
    }

    private func asked() throws -> Secret {
        let prompt = Prompt()
        do {
            let password = try prompt.secret("New password")
            guard try prompt.secret("The same again") == password else {
                throw CommandFailure("The two differ. Nothing was made; try again.")
            }
            return password
        } catch let error as Prompt.NoTerminal {
            throw CommandFailure("\(error) Give it with --password-file or --password-fd.")
        }
    }
}
