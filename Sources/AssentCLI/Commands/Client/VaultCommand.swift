import ArgumentParser
import Assent
import AssentCore
import Foundation

/// `assent vault`
struct VaultCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "vault", abstract: "Look after a vault: list its secrets' names, check it, change its key.",
        discussion: """
            Values are never shown. Without --directory it is the vault of a profile of this command line.

            Exit status: 0 in order, 1 something is wrong or was not done, 64 wrong usage, 78 wrong configuration.
            """,
        subcommands: [VaultListCommand.self, VaultCheckCommand.self, VaultRekeyCommand.self])
}

/// Which vault, and its secret.
struct VaultOptions: ParsableArguments {
    @Option(name: .long, help: "The profile whose vault it is. Default: default.")
    var profile: String?

    @Option(name: .long, help: "The directory of an app's vault, instead of a profile's.", completion: .directory)
    var directory: String?

    @Option(name: .long, help: "Which of the app's stores it is (with --directory).")
    var store = "default"

    @Option(
        name: .long, help: "The app's unprotected key file (with --directory); without it the vault has a passphrase.",
        completion: .file())
    var keyFile: String?

    @Option(
        name: .long,
        help:
            "A file that says which key provider guards the app's vault, as <profile>.vault.yaml does for a profile's (with --directory).",
        completion: .file(extensions: ["yaml", "yml"]))
    var keys: String?

    @OptionGroup var secret: VaultSecretOptions

    @Flag(name: .long, help: "Print the result as JSON.")
    var json = false

    func validate() throws {
        guard directory != nil || (keyFile == nil && keys == nil && store == "default") else {
            throw ValidationError(
                "--key-file, --keys and --store are for an app's vault: name its --directory too.")
        }
        guard directory == nil || profile == nil else {
            throw ValidationError("--profile and --directory both say which vault it is: name one.")
        }
        guard keyFile == nil || keys == nil else {
            throw ValidationError("--key-file and --keys both say what guards the vault: name one.")
        }
    }

    func place(_ places: Places = Places()) throws -> VaultPlace {
        if let directory {
            let named = try keys.map { try VaultPlace.keyProvider(in: $0) } ?? keyFile.map { KeyFileKind(path: $0) }
            return VaultPlace(directory: directory, store: store, keyProvider: named ?? PassphraseKind())
        }
        let name = profile ?? "default"
        try ClientProfile.check(name: name)
        return try VaultPlace(profile: name, places: places)
    }
}

/// Where the passphrase of a vault comes from.
struct VaultSecretOptions: ParsableArguments {
    @Option(
        name: .long, help: "A file that holds the vault's passphrase or PIN. Without it you are asked.",
        completion: .file())
    var passphraseFile: String?

    @Option(name: .customLong("passphrase-fd"), help: "A file descriptor to read the vault's passphrase or PIN from.")
    var passphraseDescriptor: Int32?

    func validate() throws {
        guard passphraseFile == nil || passphraseDescriptor == nil else {
            throw ValidationError("Name a file or a descriptor for the passphrase, not both.")
        }
    }

    func presence() throws -> TerminalPresence {
        TerminalPresence(
            known: try SecretSource.read(file: passphraseFile, descriptor: passphraseDescriptor, "the passphrase"))
    }
}

/// `assent vault list`
struct VaultListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the names, versions and sizes of a vault's secrets, never their values.")

    @OptionGroup var vault: VaultOptions

    func run() async throws {
        let console = Console(json: vault.json)
        try await Outcome.run(console) {
            let opened = try await vault.place().open(vault.secret.presence())
            let entries = try await opened.entries()
            if vault.json {
                console.emit([
                    "vault": try await opened.info().json,
                    "secrets": .array(
                        entries.map {
                            [
                                "name": .string($0.name), "version": .integer(Int64(clamping: $0.version)),
                                "bytes": .integer(Int64($0.size)),
                            ]
                        }),
                ])
                return
            }
            if entries.isEmpty { console.say("The vault is empty.") }
            for entry in entries {
                console.say(
                    "\(DisplayText.escapedForTerminal(entry.name))  version \(entry.version)  \(entry.size) bytes")
            }
        }
    }
}

/// `assent vault check`
struct VaultCheckCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Open every secret of a vault, say what is wrong, and clean up.",
        discussion: """
            Files and keys that interrupted updates and changes of key left behind are removed. A secret that cannot be \
            opened stays as it is, unless you say --remove-damaged.
            """)

    @OptionGroup var vault: VaultOptions

    @Flag(name: .long, help: "Remove the secrets that cannot be opened; the others stay.")
    var removeDamaged = false

    func run() async throws {
        let console = Console(json: vault.json)
        try await Outcome.run(console) {
            let place = try vault.place()
            let opened = try await place.open(vault.secret.presence())
            let info = try await opened.info()
            let report = try await opened.check(removingDamaged: removeDamaged)
            let tidied = try await place.withChoice(of: opened) { try await place.tidy(opened) }
            if vault.json {
                console.emit(Self.json(info, report, tidied))
            } else {
                for line in info.lines { console.say(line) }
                console.say("\(console.styled("✓", .green)) \(report.intact) secrets can be opened")
                if report.removedLeftovers + report.removedKeys > 0 {
                    console.say(
                        "\(console.styled("✓", .green)) removed \(report.removedLeftovers) files and "
                            + "\(report.removedKeys) keys that interrupted changes left behind")
                }
                if let tidied { console.say("\(console.styled("✓", .green)) \(tidied)") }
                for finding in report.findings {
                    let name = finding.name.map { DisplayText.escapedForTerminal($0) } ?? "a list of names"
                    let end = finding.isRemoved ? "Removed." : "Remove it with --remove-damaged."
                    console.say("\(console.styled("✗", .red)) \(name): \(finding.error) \(end)")
                }
            }
            if !report.isInOrder { throw ExitCode(1) }
        }
    }

    private static func json(_ info: VaultInfo, _ report: VaultReport, _ tidied: String?) -> JSONValue {
        [
            "vault": info.json, "intact": .integer(Int64(report.intact)),
            "findings": .array(
                report.findings.map {
                    [
                        "name": $0.name.map { .string($0) } ?? .null, "code": .string($0.error.code.description),
                        "detail": .string($0.error.detail), "removed": .bool($0.isRemoved),
                    ]
                }),
            "removedFiles": .integer(Int64(report.removedLeftovers)),
            "removedKeys": .integer(Int64(report.removedKeys)),
            "keyProviderChoice": tidied.map { .string($0) } ?? .null,
            "inOrder": .bool(report.isInOrder),
        ]
    }
}

extension VaultInfo {
    /// What `assent vault` prints for scripts.
    var json: JSONValue {
        [
            "store": .string(store), "level": .string(level.rawValue), "provider": .string(provider),
            "protection": .string(protection.rawValue),
            "keyDerivation": keyDerivation.map { .string($0) } ?? .null,
            "rollbackProtected": .bool(isRollbackProtected), "keyChanges": .integer(Int64(keyChanges)),
        ]
    }

    /// What it is and what that means, for a person.
    var lines: [String] {
        let kind = DisplayText.escapedForTerminal(provider)
        let protector =
            switch protection {
            case .hardware: "hardware (\(kind)): the key cannot be taken out"
            case .software:
                "software (\(kind)\(keyDerivation.map { ", " + DisplayText.escapedForTerminal($0) } ?? "")): "
                    + "someone who copies the files can try passphrases"
            case .unprotected:
                "an unprotected key file: everyone who can read it can read the vault; "
                    + "protect it with: assent vault rekey --to passphrase"
            }
        return [
            "guarded by \(protector)", "protection level \(level.rawValue)",
            isRollbackProtected
                ? "an old copy of the whole vault is noticed (counter of the device)"
                : "an old copy of the whole vault is not noticed: \(kind) has no counter",
        ]
    }
}
