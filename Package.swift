// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

let crypto: Target.Dependency = .product(name: "Crypto", package: "swift-crypto")
let cryptoExtras: Target.Dependency = .product(name: "CryptoExtras", package: "swift-crypto")
let httpTypes: Target.Dependency = .product(name: "HTTPTypes", package: "swift-http-types")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let nio: [Target.Dependency] = [
    .product(name: "NIOCore", package: "swift-nio"),
    .product(name: "NIOPosix", package: "swift-nio"),
    .product(name: "NIOHTTP1", package: "swift-nio"),
    .product(name: "NIOTLS", package: "swift-nio"),
    .product(name: "NIOSSL", package: "swift-nio-ssl"),
]
let certificates: [Target.Dependency] = [
    .product(name: "X509", package: "swift-certificates"),
    .product(name: "SwiftASN1", package: "swift-asn1"),
]
let hummingbird: Target.Dependency = .product(name: "Hummingbird", package: "hummingbird")
let grdb: Target.Dependency = .product(name: "GRDB", package: "GRDB.swift")

let package = Package(
    name: "Assent",
    platforms: [.macOS(.v15), .iOS(.v18)],
    products: [
        .library(name: "Assent", targets: ["Assent"]),
        .library(name: "AssentCore", targets: ["AssentCore"]),
        .library(name: "AssentJOSE", targets: ["AssentJOSE"]),
        .library(name: "AssentOTP", targets: ["AssentOTP"]),
        .library(name: "AssentVault", targets: ["AssentVault"]),
        .library(name: "AssentJourney", targets: ["AssentJourney"]),
        .library(name: "AssentTokens", targets: ["AssentTokens"]),
        .library(name: "AssentAuthorization", targets: ["AssentAuthorization"]),
        .library(name: "AssentURLSession", targets: ["AssentURLSession"]),
        .library(name: "AssentEnforcement", targets: ["AssentEnforcement"]),
        .library(name: "AssentHummingbird", targets: ["AssentHummingbird"]),
        .library(name: "AssentResources", targets: ["AssentResources"]),
        .library(name: "AssentSigning", targets: ["AssentSigning"]),
        .library(name: "AssentEvidence", targets: ["AssentEvidence"]),
        .library(name: "AssentTrust", targets: ["AssentTrust"]),
        .library(name: "AssentTransportNIO", targets: ["AssentTransportNIO"]),
        .library(name: "AssentPlatform", targets: ["AssentPlatform"]),
        .library(name: "AssentTesting", targets: ["AssentTesting"]),
        .library(name: "AssentConfiguration", targets: ["AssentConfiguration"]),
        .library(name: "AssentServer", targets: ["AssentServer"]),
        .executable(name: "assent", targets: ["AssentCLI"]),
    ],
    traits: [
        .trait(name: "PKCS11", description: "Keys in a PKCS#11 token; needs p11-kit's headers (libp11-kit-dev)."),
        .trait(name: "TPM", description: "Keys in a TPM 2.0 on Linux; needs tpm2-tss (libtss2-dev)."),
        .trait(name: "PostgreSQL", description: "The server's data in PostgreSQL, from Linux; needs libpq-dev."),
        .trait(name: "Keyring", description: "Secrets in Linux's kernel keyring; needs libkeyutils-dev."),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-asn1", from: "1.7.4"),
        .package(url: "https://github.com/apple/swift-certificates", from: "1.21.1"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        .target(name: "AssentCore", dependencies: [httpTypes, logging, crypto]),
        .target(name: "AssentJOSE", dependencies: ["AssentCore", crypto, cryptoExtras]),
        .target(name: "AssentOTP", dependencies: ["AssentCore", crypto]),
        .target(name: "AssentVault", dependencies: ["AssentCore", crypto, cryptoExtras, logging]),
        .target(
            name: "AssentSigningProtocol",
            dependencies: ["AssentCore", "AssentJOSE", "AssentOTP", crypto, cryptoExtras]),
        .target(
            name: "AssentSigning",
            dependencies: [
                "AssentCore", "AssentJOSE", "AssentOTP", "AssentSigningProtocol", "AssentVault", crypto, httpTypes,
                logging,
            ]),
        .target(name: "AssentPayload", dependencies: ["AssentCore", crypto, httpTypes]),
        .target(
            name: "AssentTrust",
            dependencies: [
                "AssentCore", "AssentJOSE", "AssentSigningProtocol", "AssentPayload", "AssentTokens", httpTypes,
                logging,
            ]),
        .target(name: "AssentEvidence", dependencies: ["AssentCore", "AssentJOSE", "AssentSigningProtocol"]),
        .target(name: "AssentJourney", dependencies: ["AssentCore", httpTypes, logging]),
        .target(name: "AssentTokens", dependencies: ["AssentCore", "AssentJOSE", "AssentVault", httpTypes, logging]),
        .target(
            name: "AssentAuthorization",
            dependencies: ["AssentCore", "AssentJourney", "AssentTokens", httpTypes, logging]),
        .target(
            name: "AssentURLSession", dependencies: ["AssentCore", "AssentAuthorization", httpTypes]),
        .target(name: "AssentEnforcement", dependencies: ["AssentCore", httpTypes, logging]),
        .target(
            name: "AssentHummingbird",
            dependencies: [
                "AssentCore", "AssentEnforcement", hummingbird, .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"), httpTypes, logging,
            ]),
        .target(
            name: "AssentResources",
            dependencies: ["AssentCore", "AssentJourney", "AssentTokens", "AssentAuthorization", httpTypes]),
        .target(
            name: "AssentTransportNIO",
            dependencies: ["AssentCore", crypto, httpTypes, logging] + nio + certificates),
        .systemLibrary(name: "CP11Kit", pkgConfig: "p11-kit-1", providers: [.apt(["libp11-kit-dev"])]),
        .systemLibrary(name: "CTSS2", pkgConfig: "tss2-esys", providers: [.apt(["libtss2-dev"])]),
        .systemLibrary(name: "CKeyutils", pkgConfig: "libkeyutils", providers: [.apt(["libkeyutils-dev"])]),
        .target(
            name: "AssentPlatform",
            dependencies: [
                "AssentCore", "AssentVault", crypto, logging,
                .target(name: "CP11Kit", condition: .when(platforms: [.linux], traits: ["PKCS11"])),
                .target(name: "CTSS2", condition: .when(platforms: [.linux], traits: ["TPM"])),
                .target(name: "CKeyutils", condition: .when(platforms: [.linux], traits: ["Keyring"])),
            ]),
        .target(
            name: "Assent",
            dependencies: [
                "AssentCore", "AssentJOSE", "AssentOTP", "AssentVault", "AssentJourney", "AssentTokens",
                "AssentAuthorization", "AssentPayload", "AssentResources", "AssentSigning", "AssentTransportNIO",
                "AssentTrust", "AssentPlatform", httpTypes, logging,
            ]),
        .target(
            name: "AssentConfiguration", dependencies: ["AssentCore", .product(name: "Yams", package: "Yams")]),
        .target(name: "AssentTesting", dependencies: ["AssentCore", crypto, httpTypes, logging]),
        .systemLibrary(name: "CPQ", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
        .target(
            name: "AssentStore",
            dependencies: [
                "AssentCore", grdb, .product(name: "GRDBSQLite", package: "GRDB.swift"), logging,
                .target(name: "CPQ", condition: .when(platforms: [.linux], traits: ["PostgreSQL"])),
            ]),
        .target(
            name: "AssentEngine",
            dependencies: [
                "AssentCore", "AssentJOSE", "AssentOTP", "AssentPayload", "AssentSigningProtocol", "AssentStore",
                crypto,
                cryptoExtras, logging,
            ]),
        .target(
            name: "AssentServer",
            dependencies: [
                "AssentCore", "AssentConfiguration", "AssentEnforcement", "AssentJOSE", "AssentOTP",
                "AssentPayload", "AssentSigningProtocol", "AssentStore", "AssentEngine", "AssentTransportNIO",
                hummingbird,
                .product(name: "HummingbirdCore", package: "hummingbird"),
                .product(name: "HummingbirdTLS", package: "hummingbird"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                crypto, httpTypes, logging,
            ] + nio + certificates),
        // The story of 'assent demo', which the program links.
        .target(
            name: "AssentDemo",
            dependencies: [
                "Assent", "AssentCore", "AssentEngine", "AssentJOSE", "AssentOTP", "AssentServer",
                "AssentSigningProtocol",
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                httpTypes, logging,
            ]),
        .executableTarget(
            name: "AssentCLI",
            dependencies: [
                "Assent", "AssentAuthorization", "AssentConfiguration", "AssentCore", "AssentDemo", "AssentEngine",
                "AssentJourney",
                "AssentJOSE", "AssentOTP", "AssentPlatform", "AssentServer", "AssentSigning", "AssentSigningProtocol",
                "AssentStore", "AssentTokens", "AssentTransportNIO", "AssentTrust", "AssentVault",
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
                logging,
            ]),
        .executableTarget(
            name: "AssentExampleBank", dependencies: [hummingbird, grdb, httpTypes, logging],
            path: "Examples/bank/Sources"),
        .executableTarget(
            name: "AssentExampleService",
            dependencies: [
                "AssentCore", "AssentEnforcement", "AssentHummingbird", "AssentTransportNIO", hummingbird,
                httpTypes, logging,
            ], path: "Examples/service/Sources"),
        .executableTarget(
            name: "AssentExampleURLSession",
            dependencies: [
                "AssentAuthorization", "AssentCore", "AssentJourney", "AssentTokens", "AssentTransportNIO",
                "AssentURLSession", "AssentVault",
            ], path: "Examples/urlsession/Sources"),
        .executableTarget(
            name: "AssentBench",
            dependencies: [
                "Assent", "AssentAuthorization", "AssentCore", "AssentEnforcement", "AssentEngine", "AssentJOSE",
                "AssentJourney", "AssentPayload", "AssentPeers", "AssentServer", "AssentSigningProtocol",
                "AssentStore", "AssentTesting", "AssentTokens", "AssentTransportNIO", "AssentURLSession", "AssentVault",
                "SigningTesting", "StoreTesting",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .target(name: "CPQ", condition: .when(platforms: [.linux], traits: ["PostgreSQL"])),
                crypto, grdb, httpTypes, logging,
            ] + nio, path: "Benchmarks"),

        // How tests start programs.
        .target(name: "CSpawn", path: "Tests/CSpawn"),
        .target(name: "TestSupport", dependencies: ["CSpawn", "AssentCore"], path: "Tests/TestSupport"),

        // Starts the programs that we did not write, for InteropTests, for other tests and for the benchmarks.
        .target(
            name: "AssentPeers",
            dependencies: ["TestSupport", "AssentCore", "AssentTokens", "AssentTransportNIO", crypto, httpTypes],
            path: "Tests/AssentPeers"),
        // Contracts and faults of databases, for the tests of the store and of what stands on it.
        .target(
            name: "StoreTesting", dependencies: ["AssentStore", "AssentCore", "TestSupport"], path: "Tests/StoreTesting"
        ),
        // A device that does what the page on transaction signing says, for tests of the server.
        .target(
            name: "SigningTesting", dependencies: ["AssentCore", "AssentJOSE", "AssentSigningProtocol"],
            path: "Tests/SigningTesting"),
        // What AssentVaultTests kill.
        .executableTarget(
            name: "VaultAgent", dependencies: ["AssentCore", "AssentVault"], path: "Tests/VaultAgent"),
        // What the tests of probes start, alone and under a tracer.
        .target(
            name: "IntegrityTesting", dependencies: ["Assent", "AssentCore", "AssentTesting", httpTypes],
            path: "Tests/IntegrityTesting"),
        .executableTarget(
            name: "IntegrityAgent", dependencies: ["Assent", "AssentCore", "IntegrityTesting"],
            path: "Tests/IntegrityAgent"),
        .executableTarget(name: "CTracer", path: "Tests/CTracer"),
        // What the tests of the kernel's keyring kill, forbid and starve.
        .executableTarget(
            name: "KeyringAgent",
            dependencies: [
                "AssentCore", "AssentPlatform",
                .target(name: "CKeyutils", condition: .when(platforms: [.linux], traits: ["Keyring"])),
            ], path: "Tests/KeyringAgent"),
        .target(
            name: "TokenTableSupport",
            dependencies: [
                "TestSupport", "AssentCore", "AssentTokens", "AssentTransportNIO", "AssentVault", httpTypes,
            ] + nio, path: "Tests/TokenTableSupport"),
        .executableTarget(
            name: "TokenAgent",
            dependencies: ["AssentCore", "AssentTokens", "AssentTransportNIO", "AssentVault", logging],
            path: "Tests/TokenAgent"),

        .testTarget(name: "RaceTests", dependencies: ["AssentCore"]),
        .testTarget(name: "AssentCoreTests", dependencies: ["AssentCore", "AssentTesting", "TestSupport"]),
        .testTarget(
            name: "AssentJOSETests", dependencies: ["AssentJOSE", "AssentCore", "TestSupport", crypto, cryptoExtras]),
        .testTarget(
            name: "AssentSigningProtocolTests",
            dependencies: [
                "AssentSigningProtocol", "AssentCore", "AssentEvidence", "AssentJOSE", "TestSupport", crypto,
            ]),
        .testTarget(
            name: "AssentSigningTests",
            dependencies: [
                "AssentSigning", "AssentSigningProtocol", "AssentCore", "AssentJOSE", "AssentTesting", "AssentVault",
                "TestSupport", crypto, httpTypes, logging,
            ]),
        .testTarget(
            name: "AssentPayloadTests",
            dependencies: ["AssentPayload", "AssentCore", "TestSupport", crypto, httpTypes]),
        .testTarget(
            name: "AssentTrustTests",
            dependencies: [
                "AssentTrust", "AssentCore", "AssentJOSE", "AssentSigningProtocol", "AssentTesting", "AssentTokens",
                "AssentVault", "TestSupport", crypto, httpTypes, logging,
            ]),
        .testTarget(name: "AssentOTPTests", dependencies: ["AssentOTP", "AssentCore", "TestSupport"]),
        .testTarget(
            name: "AssentVaultTests",
            dependencies: ["AssentVault", "AssentPeers", "AssentCore", "AssentTesting", "TestSupport", crypto]),
        .testTarget(
            name: "AssentJourneyTests", dependencies: ["AssentJourney", "AssentCore", "AssentTesting", httpTypes]),
        .testTarget(
            name: "AssentTokensTests",
            dependencies: ["AssentTokens", "AssentCore", "AssentJOSE", "AssentVault", "AssentTesting", httpTypes]),
        .testTarget(
            name: "TokenLifecycleTests",
            dependencies: [
                "TestSupport", "TokenTableSupport", "TokenAgent", "AssentCore", "AssentTokens", "AssentTransportNIO",
                "AssentVault", "AssentServer", "AssentEngine", "AssentStore", httpTypes, logging,
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ]),
        .testTarget(
            name: "AssentAuthorizationTests",
            dependencies: [
                "AssentAuthorization", "AssentJourney", "AssentTokens", "AssentVault", "AssentCore", "AssentTesting",
                "TestSupport", httpTypes,
            ]),
        .testTarget(
            name: "AssentEnforcementTests",
            dependencies: ["AssentEnforcement", "AssentCore", "AssentTesting", httpTypes, logging]),
        .testTarget(
            name: "AssentHummingbirdTests",
            dependencies: [
                "AssentHummingbird", "AssentEnforcement", "AssentCore", "AssentTesting", "TestSupport", hummingbird,
                httpTypes,
                .product(name: "HummingbirdTesting", package: "hummingbird"),
                .product(name: "NIOCore", package: "swift-nio"),
            ]),
        .testTarget(
            name: "AssentURLSessionTests",
            dependencies: [
                "AssentURLSession", "AssentAuthorization", "AssentJourney", "AssentTokens", "AssentVault",
                "AssentCore", "AssentTesting", "TestSupport", httpTypes,
            ]),
        .testTarget(
            name: "AssentTests",
            dependencies: [
                "Assent", "AssentCore", "AssentPayload", "AssentTesting", "AssentTokens", "AssentTransportNIO",
                "AssentJourney", "AssentPeers", "AssentResources", "CTracer", "IntegrityAgent", "IntegrityTesting",
                "TestSupport", crypto, httpTypes,
            ]),
        .testTarget(
            name: "AssentResourcesTests",
            dependencies: [
                "Assent", "AssentResources", "AssentAuthorization", "AssentJourney", "AssentTokens", "AssentVault",
                "AssentCore", "AssentTesting", "AssentTransportNIO", "TestSupport", httpTypes,
            ] + nio),
        .testTarget(
            name: "AssentTransportNIOTests",
            dependencies: [
                "AssentTransportNIO", "AssentCore", "AssentTesting", "AssentTokens", "AssentVault", "TestSupport",
                crypto, httpTypes,
            ] + nio + certificates),
        .testTarget(
            name: "AssentPlatformTests",
            dependencies: [
                "AssentPlatform", "AssentPeers", "CTracer", "AssentVault", "AssentCore", "AssentTesting",
                "TestSupport", "Assent",
                "AssentCLI", "AssentDemo", "AssentExampleBank", "AssentOTP", "AssentServer", crypto, logging,
                .target(name: "CP11Kit", condition: .when(platforms: [.linux], traits: ["PKCS11"])),
                .target(name: "CKeyutils", condition: .when(platforms: [.linux], traits: ["Keyring"])),
            ], exclude: ["PKCS11/faulty-module.c", "Keyring/forbid-keyrings.c", "Trouble/faulty-tpm.c"]),
        .testTarget(name: "AssentConfigurationTests", dependencies: ["AssentConfiguration", "AssentCore"]),
        .testTarget(
            name: "AssentStoreTests",
            dependencies: [
                "AssentStore", "AssentCore", "StoreTesting", "TestSupport", grdb, logging,
                .product(name: "InMemoryLogging", package: "swift-log"),
            ]),
        .testTarget(
            name: "AssentEngineTests",
            dependencies: [
                "AssentEngine", "AssentPayload", "AssentSigningProtocol", "AssentStore", "AssentCore", "AssentJOSE",
                "AssentOTP", "AssentSigning", "AssentTesting", "AssentVault", "SigningTesting", "StoreTesting",
                "TestSupport",
                httpTypes, logging,
            ]),
        .testTarget(
            name: "AssentServerTests",
            dependencies: [
                "AssentServer", "AssentConfiguration", "AssentEnforcement", "AssentEngine", "AssentHummingbird",
                "AssentJOSE", "AssentSigningProtocol", "AssentStore", "AssentCore", "AssentOTP", "AssentPayload",
                "AssentTesting", "AssentTrust", "AssentVault", "SigningTesting", "StoreTesting", "TestSupport",
                hummingbird, httpTypes, logging, crypto,
                .product(name: "HummingbirdTesting", package: "hummingbird"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "InMemoryLogging", package: "swift-log"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ] + nio + certificates),
        .testTarget(
            name: "AssentCLITests",
            dependencies: [
                "AssentCLI", "Assent", "AssentConfiguration", "AssentCore", "AssentDemo", "AssentEngine", "AssentJOSE",
                "AssentPeers", "AssentServer", "AssentStore", "AssentTesting", "AssentTokens", "AssentTrust",
                "AssentVault", "TestSupport",
                httpTypes, logging,
            ] + nio),
        .testTarget(
            name: "EndToEndTests",
            dependencies: [
                "Assent", "AssentCore", "AssentServer", "AssentEngine", "AssentCLI", "AssentDemo", "AssentOTP",
                "AssentPayload", "AssentPeers",
                "AssentSigningProtocol", "AssentStore", "AssentTesting", "AssentTransportNIO", "AssentExampleBank",
                "AssentEnforcement", "AssentExampleService", "AssentExampleURLSession", "AssentURLSession",
                "StoreTesting", "TestSupport", "TokenTableSupport", httpTypes, hummingbird, logging,
                .product(name: "NIOCore", package: "swift-nio"),
            ]),
        .testTarget(
            name: "InteropTests",
            dependencies: [
                "AssentPeers", "AssentServer", "AssentTokens", "AssentTransportNIO", "AssentVault", "AssentCore",
                "AssentJOSE", "AssentTesting", "TestSupport", "TokenAgent", "TokenTableSupport", httpTypes, logging,
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ], exclude: ["peers"]),
    ],
    swiftLanguageModes: [.v6]
)

for target in package.targets where target.type != .system {
    target.swiftSettings = [
        .treatAllWarnings(as: .error),
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    ]
}

// Most of a test's time goes by in these modules and in C. 'make' has them optimised also in a debug build: a clean
// build takes no longer, and the tests half as long. A package that others depend on by version may not have such
// flags, so they are only here when they are asked for.
if Context.environment["ASSENT_OPTIMIZED_CORE"] != nil {
    let optimized: Set = ["AssentCore", "AssentJOSE", "AssentSigningProtocol", "AssentStore"]
    for target in package.targets where optimized.contains(target.name) {
        target.swiftSettings?.append(.unsafeFlags(["-O"]))
    }
}
