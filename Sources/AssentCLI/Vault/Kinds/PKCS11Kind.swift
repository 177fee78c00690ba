import Assent
import AssentCore
import AssentPlatform
import Foundation

/// A PKCS#11 token.
struct PKCS11Kind: KeyProviderKind {
    static let name = "pkcs11"
    static let rekeyOptions: (required: Set<String>, optional: Set<String>) = (
        ["module", "token"], ["new-passphrase"]
    )

    let module: String
    let token: String

    init(module: String, token: String) {
        self.module = module
        self.token = token
    }

    init(_ settings: SettingsReader<Void>) {
        module = settings.string("module")
        token = settings.string("token")
    }

    init(_ options: HardwareOptions, keyFile: String) {
        module = options.module ?? ""
        token = options.token ?? ""
    }

    var yaml: [String] { [Self.line("module", module), Self.line("token", token)] }

    func matches(_ info: VaultInfo) -> Bool { info.protection == .hardware && info.provider == "pkcs11" }

    var howToChangeSecret: String {
        "The PIN is the token's: change it with its own program, for example pkcs11-tool --change-pin."
    }

    private static func missing(_ module: String?, _ reason: String) -> KeyProviderStatus {
        status(module, .hardware, .unavailable(reason: reason))
    }

    #if PKCS11 && os(Linux)
    func keys(_ directory: URL, presence: any UserPresence) -> VaultKeys {
        .requireHardware(keyProvider(directory, presence: presence))
    }

    func keyProvider(_ directory: URL, presence: any UserPresence) -> any KeyProvider {
        PKCS11KeyProvider(module: module, token: token, pin: presence)
    }

    /// The token that was chosen, and all in the modules that p11-kit knows.
    static func statuses(chosen: PKCS11Kind?, vault: URL) async -> [KeyProviderStatus] {
        var statuses: [KeyProviderStatus] = []
        if let chosen { statuses.append(await chosen.status(isChosen: true)) }
        for registered in RegisteredTokens.all() {
            if let problem = registered.problem {
                statuses.append(missing(registered.module, problem))
            } else if registered.labels.isEmpty {
                let text = "It has no token. Insert one, or make one (softhsm2-util --init-token)."
                statuses.append(missing(registered.module, text))
            }
            for label in registered.labels {
                let found = PKCS11Kind(module: registered.module, token: label)
                if chosen?.isSameToken(as: found) != true { statuses.append(await found.status(isChosen: false)) }
            }
        }
        guard statuses.isEmpty else { return statuses }
        return [
            missing(
                nil,
                "p11-kit knows no module. Install the token's driver (with a file in /usr/share/p11-kit/modules), or "
                    + "name its module: assent vault rekey --to pkcs11 --module …")
        ]
    }

    private func status(isChosen: Bool) async -> KeyProviderStatus {
        let provider = PKCS11KeyProvider(module: module, token: token, pin: nil)
        return Self.status("\(token) in \(module)", .hardware, isChosen: isChosen, await provider.availability)
    }

    /// Whether it is the same token; a module may have several paths.
    private func isSameToken(as other: PKCS11Kind) -> Bool {
        token == other.token
            && URL(filePath: module).resolvingSymlinksInPath() == URL(filePath: other.module).resolvingSymlinksInPath()
    }
    #else
    func keys(_ directory: URL, presence: any UserPresence) throws -> VaultKeys {
        throw PlatformBackend.pkcs11.isMissing
    }

    func keyProvider(_ directory: URL, presence: any UserPresence) throws -> any KeyProvider {
        throw PlatformBackend.pkcs11.isMissing
    }

    static func statuses(chosen: PKCS11Kind?, vault: URL) async -> [KeyProviderStatus] {
        [missing(nil, PlatformBackend.pkcs11.isMissing.detail)]
    }
    #endif
}
