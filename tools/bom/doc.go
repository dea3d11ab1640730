// Command bom writes what a program contains: a bill of materials in CycloneDX form, and the license
// texts of all modules.
//
//	bom -name lockkeeper -version 1.2.0 -licenses DIR -o lockkeeper.cdx.json PROGRAM…
//
// It reads the modules from the programs themselves, and the license texts from the module cache
// of the main module in the current directory. It fails if a module has no license text, or one
// that it does not know. Equal programs yield equal bytes.
package main
