import ArgumentParser

/// The options of `assent vault rekey` that say what guards the vault from now on.
struct RekeyOptions: ParsableArguments {
    /// A kind that exists.
    struct Target: ExpressibleByArgument, Sendable {
        let kind: any KeyProviderKind.Type

        init?(argument: String) {
            guard let kind = KeyProviderKinds.named(argument) else { return nil }
            self.kind = kind
        }

        static var allValueStrings: [String] { KeyProviderKinds.all.map { $0.name } }
    }

    /// Options that contradict each other or lack something.
    struct Mistake: Error {
        let text: String

        init(_ text: String) { self.text = text }
    }

    @Option(name: .long, help: "The key provider that guards the vault from now on: \(KeyProviderKinds.names).")
    var to: Target?

    @Option(name: .long, help: "The new unprotected key file (with --to key-file).", completion: .file())
    var newKeyFile: String?

    @OptionGroup var hardware: HardwareOptions

    @Option(
        name: .long,
        help: "A file that holds the new passphrase, the PIN of the token, or the new PIN of the TPM's keys.",
        completion: .file())
    var newPassphraseFile: String?

    @Option(name: .customLong("new-passphrase-fd"), help: "A file descriptor to read the new passphrase or PIN from.")
    var newPassphraseDescriptor: Int32?

    /// The names of the options that were given, beside `--to`. The new secret is one, wherever it comes from.
    private var given: Set<String> {
        let all: [(String, Bool)] = [
            ("new-key-file", newKeyFile != nil),
            ("new-passphrase", newPassphraseFile != nil || newPassphraseDescriptor != nil),
        ]
        return Set(all.filter(\.1).map(\.0)).union(hardware.given)
    }

    func validate() throws {
        let given = given
        let (required, optional) = to?.kind.rekeyOptions ?? ([], ["new-passphrase"])
        if let missing = required.subtracting(given).min() {
            throw ValidationError("--to \(to?.kind.name ?? "") needs --\(missing).")
        }
        if let extra = given.subtracting(required).subtracting(optional).min() {
            let kinds = KeyProviderKinds.all.filter {
                $0.rekeyOptions.required.union($0.rekeyOptions.optional).contains(extra)
            }
            throw ValidationError(
                "--\(extra) belongs to \(kinds.map { "--to \($0.name)" }.joined(separator: " or ")).")
        }
        if hardware.withoutPin, given.contains("new-passphrase") {
            throw ValidationError("Give a new PIN or say --without-pin, not both.")
        }
        _ = try kind()
    }

    /// What guards the vault from now on; `nil` when that stays.
    func kind() throws -> (any KeyProviderKind)? {
        do {
            return try to?.kind.init(hardware, keyFile: newKeyFile ?? "")
        } catch let mistake as Mistake {
            throw ValidationError(mistake.text)
        }
    }
}
